import { END_ID, FAILED_ID, FAILURE_ID, joinId, START_ID, undoId } from "../../graph/flow";
import type { GraphLive, NodeMark } from "../../graph/live";
import { edgeId, typeId } from "../../graph/nodes";
import type { PackageAnswer } from "../../protocol/api";
import type { ForkedEvent, WireEvent } from "../../protocol/frames";
import { activeAt, closedAt, eventsOf, openAt, statusAt, threadOf, turnAt, turnStateAt } from "../../run/select";
import type { EventKind, EventOf, RunView, Turn } from "../../run/view";
import { handoffOf } from "./pack";

const KINDS = [
  "TurnStarted", "HandedOff", "Branched", "Forked", "Joined", "ArtifactPublished", "ArtifactArrived", "RunEnded",
] as const satisfies readonly EventKind[];

/** What the first `seq` events have done in the graph. */
export function liveAt(view: RunView, seq: number, pack: PackageAnswer): GraphLive {
  const walk = new Walk(view, seq, pack);
  const events = KINDS.flatMap((kind): readonly WireEvent[] => eventsOf(view, kind, seq));
  for (const event of events.sort((one, other) => one.seq - other.seq)) walk.take(event);
  return walk.live();
}

class Walk {
  private readonly visits = new Map<string, number>();
  private readonly taken = new Set<string>();
  private readonly words = new Map<string, string>();
  private readonly threads = new Map<string, number>();
  private readonly turns = new Map<string, Turn>();
  private readonly types = new Map<string, string>();
  private readonly forks = new Map<string, ForkedEvent>();
  /** Of a flow: the nodes that each line of steps has come to. */
  private readonly at = new Map<string, readonly string[]>([["", [START_ID]]]);
  private readonly isBoard: boolean;
  private readonly isFlow: boolean;
  private last: string | undefined;

  constructor(private readonly view: RunView, private readonly seq: number, private readonly pack: PackageAnswer) {
    this.isBoard = Boolean(pack.spec.board);
    this.isFlow = Boolean(pack.spec.flow);
    if (this.isFlow) this.visit(START_ID);
  }

  take(event: WireEvent): void {
    switch (event.kind) {
      case "TurnStarted":
        return this.takeTurn(turnAt(this.view, event.turn, this.seq)!);
      case "HandedOff":
        return this.takeHandoff(event);
      case "Branched":
        return this.takeBranch(event);
      case "Forked":
        this.forks.set(event.data.name, event);
        if (this.isFlow) this.move(event.data.lane, event.data.name);
        else this.visit(event.data.name);
        event.data.members.forEach((_, index) => this.at.set(`${event.seq}.${index}`, [event.data.name]));
        return;
      case "Joined":
        return this.takeJoin(event);
      case "ArtifactPublished":
      case "ArtifactArrived":
        this.types.set(event.data.id, event.data.type);
        this.visit(typeId(event.data.type));
        this.go(event.data.by, typeId(event.data.type));
        return;
      case "RunEnded":
        if (this.isFlow) this.move("", event.data.outcome === "completed" ? END_ID : FAILED_ID);
        return;
    }
  }

  live(): GraphLive {
    const { view, seq } = this;
    const active = activeAt(view, seq).map((turn) => this.nodeOf(turn));
    const marks = new Map<string, NodeMark>();
    for (const [node, turn] of this.turns) {
      const state = turnStateAt(view, turn.number, seq);
      if (state !== "working") marks.set(node, state);
    }
    const isOver = statusAt(view, seq).status === "ended";
    const asking = isOver ? [] : openAt(view, seq).filter(({ id }) => !closedAt(view, id, seq));
    const waiting = new Set(asking.map(({ turn, agent }) => {
      const of = turnAt(view, turn, seq);
      return of ? this.nodeOf(of) : agent;
    }));
    for (const node of waiting) marks.set(node, "waiting");
    return {
      active: active.filter((node) => !waiting.has(node)),
      visits: this.visits,
      taken: this.taken,
      last: this.last,
      words: this.words,
      marks,
      threads: this.threads,
    };
  }

  private nodeOf(turn: Turn): string {
    if (!this.isFlow) return turn.agent;
    const undone = turn.undoes ? turnAt(this.view, turn.undoes, this.seq) : undefined;
    return undone ? undoId(undone.step) : turn.step;
  }

  private takeTurn(turn: Turn): void {
    const node = this.nodeOf(turn);
    this.threads.set(node, threadOf(this.view, turn.agent));
    this.turns.set(node, turn);
    if (this.isFlow && !turn.undoes) this.move(turn.lane, node);
    else this.visit(node);
    if (this.isBoard) {
      for (const id of turn.inputs) this.go(typeId(this.types.get(id) ?? ""), node);
    }
  }

  private takeBranch({ data: { source, lane, why } }: EventOf<"Branched">): void {
    // A path of a fork recovers from the fork on, and a run from its failure.
    const fork = [...this.forks.values()].find(({ seq }) => lane.startsWith(`${seq}.`));
    if (why === "recovery" && fork) this.at.set(lane, [fork.data.name]);
    else if (why === "failure") this.at.set(lane, [source, FAILURE_ID]);
    else if (!this.turns.has(source)) this.move(lane, source);
    if (why === "failure") this.visit(FAILURE_ID);
  }

  private takeHandoff({ data: { source, target, rule } }: EventOf<"HandedOff">): void {
    const sources = this.forks.get(source)?.data.members ?? [source];
    for (const each of sources) this.go(each, target);
    const condition = handoffOf(this.pack, rule)?.condition;
    if (condition && this.last) this.words.set(this.last, condition);
  }

  private takeJoin({ data: { name, fork = 0 } }: EventOf<"Joined">): void {
    const forked = this.forks.get(name);
    if (!forked || !this.isFlow) return;
    const ends = forked.data.members.flatMap((_, index) => this.at.get(`${fork}.${index}`) ?? []);
    // Without a step that joins, the paths meet in a node of their own.
    this.at.set(forked.data.lane, ends);
    for (const end of ends) this.go(end, joinId(name));
    this.visit(joinId(name));
    this.at.set(forked.data.lane, [...ends, joinId(name)]);
  }

  /** A line of steps goes on to a node. */
  private move(lane: string, node: string): void {
    for (const from of this.at.get(lane) ?? []) this.go(from, node);
    this.at.set(lane, [node]);
    this.visit(node);
  }

  private visit(node: string): void {
    this.visits.set(node, (this.visits.get(node) ?? 0) + 1);
  }

  private go(source: string, target: string): void {
    this.last = edgeId(source, target);
    this.taken.add(this.last);
  }
}
