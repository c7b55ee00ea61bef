/** What is true of a run after its first `seq` events. Nothing is folded: all of it is looked up. */
import type { WireEvent } from "../protocol/frames";
import { Log } from "./log";
import {
  NOTHING_SPENT,
  type AgentItem,
  type Call,
  type CallResult,
  type Change,
  type ChatItem,
  type Closed,
  type EventKind,
  type EventOf,
  type Head,
  type Outcome,
  type Request,
  type RunView,
  type Span,
  type SpanEnd,
  type Spent,
  type Turn,
  type TurnEnd,
} from "./view";

interface Seq {
  seq: number;
}

/** Return what a map has, unless a later event brought it. */
function known<T extends Seq>(entry: T | undefined, seq: number): T | undefined {
  return entry !== undefined && entry.seq <= seq ? entry : undefined;
}

export function headAt(view: RunView, seq: number): Head | undefined {
  return view.heads.last(seq);
}

export function itemsAt(view: RunView, seq: number): readonly ChatItem[] {
  return view.items.until(seq);
}

/** Return what an agent said, as its hooks have changed it; nothing before it is sent. */
export function sentText(view: RunView, item: AgentItem, seq: number): string {
  return known(view.sent.get(item.seq), seq)?.text ?? (item.isHeld ? "" : item.text);
}

export function eventAt(view: RunView, seq: number): WireEvent | undefined {
  const found = view.events.last(seq);
  return found?.seq === seq ? found : undefined;
}

export function eventsAt(view: RunView, seq: number): readonly WireEvent[] {
  return view.events.until(seq);
}

/** Return the events of one kind: ContextAssembled are the prompts, HandedOff the handoffs, ... */
export function eventsOf<K extends EventKind>(
  view: RunView,
  kind: K,
  seq: number,
): readonly EventOf<K>[] {
  const found = view.byKind.get(kind) as Log<EventOf<K>> | undefined;
  return found?.until(seq) ?? [];
}

export function lastOf<K extends EventKind>(
  view: RunView,
  kind: K,
  seq: number,
): EventOf<K> | undefined {
  return (view.byKind.get(kind) as Log<EventOf<K>> | undefined)?.last(seq);
}

/** Return the events that led to one, the nearest first. */
export function causesOf(view: RunView, seq: number): WireEvent[] {
  const found: WireEvent[] = [];
  let at = eventAt(view, seq)?.cause ?? 0;
  while (at > 0 && found.length < 50) {
    const event = eventAt(view, at);
    if (event === undefined) break;
    found.push(event);
    at = event.cause < at ? event.cause : 0;
  }
  return found;
}

/** Return what the user said to begin a turn; null if no message began it. */
export function messageOf(view: RunView, turn: Turn): string | null {
  let event = eventAt(view, turn.seq);
  while (event?.kind === "TurnStarted" || event?.kind === "HandedOff") event = eventAt(view, event.cause);
  return event?.kind === "RequestAnswered" ? String(event.data.value) : null;
}

// -- turns

export function turnsAt(view: RunView, seq: number): readonly Turn[] {
  return view.turns.until(seq);
}

export function turnAt(view: RunView, number: number, seq: number): Turn | undefined {
  return known(view.turnOf.get(number), seq);
}

export function turnEndAt(view: RunView, number: number, seq: number): TurnEnd | undefined {
  return known(view.turnEnds.get(number), seq);
}

/** Return the turns under way. */
export function activeAt(view: RunView, seq: number): readonly Turn[] {
  if (statusAt(view, seq).status === "ended") return [];
  return turnsAt(view, seq).filter((turn) => turnEndAt(view, turn.number, seq) === undefined);
}

/** Return the turn that the cursor stands in: that of its event, or the newest before it. */
export function turnUnder(view: RunView, seq: number): Turn | undefined {
  const number = view.events.last(seq)?.turn ?? 0;
  return (number ? turnAt(view, number, seq) : undefined) ?? view.turns.last(seq);
}

/** done, failed, undone (a later turn has undone it), or still at work. */
export function turnStateAt(
  view: RunView,
  number: number,
  seq: number,
): "working" | "done" | "failed" | "undone" {
  const undoing = view.undoneBy.get(number)?.until(seq) ?? [];
  const isUndone = undoing.some((turn) => turnEndAt(view, turn.number, seq)?.error === null);
  if (isUndone) return "undone";
  const end = turnEndAt(view, number, seq);
  if (end === undefined) return "working";
  return end.error === null ? "done" : "failed";
}

/** Return the position of an agent in the order of first turns, which gives its colour. */
export function threadOf(view: RunView, agent: string): number {
  const found = view.agents.until(view.seq).find((entry) => entry.agent === agent);
  return found?.index ?? view.agents.length;
}

// -- calls and questions

export function callAt(view: RunView, id: string, seq: number): Call | undefined {
  return known(view.calls.get(id), seq);
}

export function resultAt(view: RunView, id: string, seq: number): CallResult | undefined {
  return known(view.results.get(id), seq);
}

export function requestAt(view: RunView, id: string, seq: number): Request | undefined {
  return known(view.requests.get(id), seq);
}

/** Return how a question was closed; undefined while it is open. */
export function closedAt(view: RunView, id: string, seq: number): Closed | undefined {
  return known(view.closed.get(id), seq);
}

/** Return the questions that are open, chats too. */
export function openAt(view: RunView, seq: number): readonly Request[] {
  return eventsOf(view, "RequestOpened", seq)
    .filter((event) => closedAt(view, event.data.id, seq) === undefined)
    .map((event) => view.requests.get(event.data.id)!);
}

// -- status and time

export interface Status {
  status: "new" | "working" | "waiting" | "ended";
  /** A stop was asked for and has not happened yet. */
  stopping: boolean;
  outcome: Outcome | null;
  reason: string;
  /** The questions it waits for. */
  waitingFor: readonly Request[];
}

export function statusAt(view: RunView, seq: number): Status {
  const phase = view.phases.last(seq);
  if (phase === undefined) {
    return { status: "new", stopping: false, outcome: null, reason: "", waitingFor: [] };
  }
  const { status, outcome, reason } = phase;
  return {
    status,
    stopping: status !== "ended" && lastOf(view, "StopRequested", seq) !== undefined,
    outcome,
    reason,
    waitingFor: status === "waiting" ? openAt(view, seq) : [],
  };
}

/** Return how long a run has worked and waited, until an event or, at its end, until now. */
export function clocksAt(
  view: RunView,
  seq: number,
  now?: number,
): { worked: number; waited: number } {
  const phase = view.phases.last(seq);
  if (phase === undefined) return { worked: 0, waited: 0 };
  const until = now ?? view.events.last(seq)?.ts ?? phase.ts;
  const since = Math.max(0, until - phase.ts);
  return {
    worked: phase.worked + (phase.status === "working" ? since : 0),
    waited: phase.waited + (phase.status === "waiting" ? since : 0),
  };
}

export function spansAt(view: RunView, seq: number): readonly Span[] {
  return view.spans.until(seq);
}

export function spanEndAt(view: RunView, id: string, seq: number): SpanEnd | undefined {
  return known(view.spanEnds.get(id), seq);
}

// -- variables and cost

/** Return the values of all variables that were given or set, by name. */
export function variablesAt(view: RunView, seq: number): Map<string, Change> {
  const found = new Map<string, Change>();
  for (const [name, changes] of view.variables) {
    const last = changes.last(seq);
    if (last !== undefined) found.set(name, last);
  }
  return found;
}

/** Return all values that a variable has had, the oldest first. */
export function historyAt(view: RunView, name: string, seq: number): readonly Change[] {
  return view.variables.get(name)?.until(seq) ?? [];
}

export function spentAt(view: RunView, seq: number): Spent {
  return view.spending.last(seq)?.total ?? NOTHING_SPENT;
}
