/**
 * Everything that is known of a run. A view is no snapshot: it answers for every cursor. Each entry
 * has the number of the event that brought it, and `select.ts` ignores what came after the cursor.
 *
 * Logs and maps only grow, and are shared with older views: compare views, never their maps.
 */
import type { HandedOffEvent, ModelRepliedEvent, Usage, WireEvent } from "../protocol/frames";
import { Log, type Stamped } from "./log";

export type EventKind = WireEvent["kind"];
export type EventOf<K extends EventKind> = Extract<WireEvent, { kind: K }>;
export type Outcome = EventOf<"RunEnded">["data"]["outcome"];

/** What every entry has: its event, when that was, and its turn (0: the run itself). */
export interface Entry extends Stamped {
  ts: number;
  turn: number;
}

// -- the chat

/** The start of a run. Chat: the first message follows as an item of its own. */
export interface StartItem extends Entry {
  kind: "start";
  workflow: string;
  input: Record<string, unknown> | null;
}

export interface UserItem extends Entry {
  kind: "user";
  /** Null: it was said by somebody else, and is not shown to this reader. */
  text: string | null;
  user: string;
}

export interface AgentItem extends Entry {
  kind: "agent";
  agent: string;
  /** What a person reads. What its hooks made of it later: `sentText(view, item, seq)`. */
  text: string;
  /** Whether it is shown only when its automatic tool has accepted it. */
  isHeld: boolean;
  /** The reply as the model gave it, where that is structured. */
  raw: string | null;
  /** The event that started the model call; 0 if no model was called. */
  call: number;
  answerer: ModelRepliedEvent["data"]["answerer"] | null;
  model: string;
  /** Why the reply ends early; empty if it is complete. */
  finish: string;
  insteadOf: string;
  retries: readonly string[];
}

/** What the workflow itself tells the user. */
export interface NoteItem extends Entry {
  kind: "note";
  text: string;
}

/** A tool that a model asked for; its result is in `results`, its questions are items of their own. */
export interface ToolItem extends Entry {
  kind: "tool";
  call: string;
}

export interface HandoffItem extends Entry {
  kind: "handoff";
  source: string;
  target: string;
  why: HandedOffEvent["data"]["why"];
  /** The index of the handoff that decided. */
  rule: number | null;
  /** The rules that were asked, in order, and whether the condition of each holds. */
  evaluated: Readonly<Record<string, boolean>>;
}

/** A question of a tool, a step or an approval: what and to whom is in `requests`. */
export interface RequestItem extends Entry {
  kind: "request";
  id: string;
}

export interface SurfaceItem extends Entry {
  kind: "surface";
  tool: string;
  component: string;
  mode: "inline" | "artifact";
  payload: unknown;
}

export interface ForkedItem extends Entry {
  kind: "forked";
  name: string;
  members: readonly string[];
}

export interface JoinedItem extends Entry {
  kind: "joined";
  name: string;
  text: string | null;
  /** Of a flow: how each path ended. */
  results: Readonly<Record<string, string>> | null;
}

/** A step of a flow, an approval, or what undoes a step; its end is in `turnEnds`. */
export interface StepItem extends Entry {
  kind: "step";
  step: string;
  attempt: number;
  undoes: number;
}

export interface BranchItem extends Entry {
  kind: "branch";
  source: string;
  target: string;
  why: EventOf<"Branched">["data"]["why"];
}

/** An artifact that was published, or that came from another run. */
export interface ArtifactItem extends Entry {
  kind: "artifact";
  id: string;
  type: string;
  by: string;
  payload: unknown;
  /** The subscriptions that want it. */
  wakes: readonly string[];
  arrived: boolean;
}

/** A reply was refused, a model gave none, or a turn failed. */
export interface TroubleItem extends Entry {
  kind: "trouble";
  agent: string;
  what: "reply" | "model" | "turn";
  error: string;
  /** Of a turn: what failed. */
  reason: EventOf<"TurnFailed">["data"]["kind"] | null;
  attempts: number;
}

export interface StopItem extends Entry {
  kind: "stop";
  mode: "now" | "after_turn";
  user: string;
}

/** From here on it is a run of its own; what stands above was copied. */
export interface CopiedItem extends Entry {
  kind: "copied";
  parent: string;
  /** The last event that was copied. */
  from: number;
}

export interface EndItem extends Entry {
  kind: "end";
  outcome: Outcome;
  reason: string;
}

export type ChatItem =
  | StartItem
  | UserItem
  | AgentItem
  | NoteItem
  | ToolItem
  | HandoffItem
  | RequestItem
  | SurfaceItem
  | ForkedItem
  | JoinedItem
  | StepItem
  | BranchItem
  | ArtifactItem
  | TroubleItem
  | StopItem
  | CopiedItem
  | EndItem;

// -- turns, calls and questions

export interface Turn extends Stamped {
  ts: number;
  number: number;
  agent: string;
  /** The event that started it in parallel with others; 0 for a turn of its own. */
  fork: number;
  /** Of a flow: the step. Of a board: the subscription that woke the agent. */
  step: string;
  lane: string;
  attempt: number;
  /** The turn that this one undoes; 0: none. */
  undoes: number;
  inputs: readonly string[];
}

export interface TurnEnd extends Stamped {
  ts: number;
  /** Why it failed; null if it did not. */
  error: string | null;
  kind: EventOf<"TurnFailed">["data"]["kind"] | null;
  failure: Readonly<Record<string, unknown>> | null;
}

export interface Call extends Entry {
  id: string;
  tool: string;
  agent: string;
  arguments: Readonly<Record<string, unknown>>;
  /** Called with the fields of a structured output, not because the model asked. */
  auto: boolean;
  hook: EventOf<"ToolCalled">["data"]["hook"];
  variable: string;
}

export interface CallResult extends Stamped {
  ts: number;
  value: unknown;
  error: string | null;
  failure: EventOf<"ToolFailed">["data"]["kind"] | null;
  abandonedBy: string;
}

export interface Request extends Entry {
  id: string;
  kind: "chat" | "ui";
  agent: string;
  tool: string | null;
  /** The call that asks; null for a chat or an approval, and where end users do not learn it. */
  call: string | null;
  payload: unknown;
  expiresAt: number | null;
  component: string;
  mode: string;
  /** `user:NAME`, `role:NAME` or a group; empty: the user whose run it is. */
  addressee: string;
  sets: readonly string[];
}

/** How a question was closed. cancelled: its tool, its turn or the run ended without an answer. */
export interface Closed extends Stamped {
  ts: number;
  how: "answered" | "expired" | "cancelled";
  value: unknown;
  user: string;
  role: string;
}

// -- time

/** A bar of the timeline; its end is in `spanEnds`, by `id`. */
export interface Span extends Entry {
  id: string;
  kind: "turn" | "model" | "tool" | "hook" | "waiting" | "retrieval";
  name: string;
  agent: string;
  start: number;
}

export interface SpanEnd extends Stamped {
  ts: number;
  error: string | null;
  /** Of a model call: the model that answered. */
  name: string;
}

/** What the run does from this event on; the sums are those of the time before it. */
export interface Phase extends Stamped {
  ts: number;
  status: "working" | "waiting" | "ended";
  outcome: Outcome | null;
  reason: string;
  worked: number;
  waited: number;
}

// -- values and cost

/** A value of a variable. `seq` is when it began to count: in a group, when that joined. */
export interface Change extends Entry {
  name: string;
  value: unknown;
  /** start, trigger, tool:NAME, source:KIND, step:NAME, computed, or edit in a fork. */
  writer: string;
  actor: string;
  cause: number;
  /** The event that set it. */
  event: number;
}

export interface Spending extends Entry {
  agent: string;
  model: string;
  usage: Usage;
  total: Spent;
}

/** The sum of all model calls; those whose price or tokens are not known are counted. */
export interface Spent {
  calls: number;
  input: number;
  output: number;
  cost: number;
  unpriced: number;
  unmetered: number;
}

export const NOTHING_SPENT: Spent = {
  calls: 0, input: 0, output: 0, cost: 0, unpriced: 0, unmetered: 0,
};

/** Return the sum with one more call. */
export function addUsage(was: Spent, usage: Usage): Spent {
  const isMetered = usage.input_tokens !== null && usage.output_tokens !== null;
  return {
    calls: was.calls + 1,
    input: was.input + (usage.input_tokens ?? 0),
    output: was.output + (usage.output_tokens ?? 0),
    cost: was.cost + (usage.cost_usd ?? 0),
    unpriced: was.unpriced + (usage.cost_usd === null ? 1 : 0),
    unmetered: was.unmetered + (isMetered ? 0 : 1),
  };
}

// -- what is not stored

/** Text while a model writes it; its reply takes its place. */
export interface Draft {
  /** The event that started the model call. */
  call: number;
  turn: number;
  agent: string;
  text: string;
  /** Why the model is asked again. */
  retry: string;
  /** Pieces that came before what stands before them, by where they begin. */
  ahead: ReadonlyMap<number, string>;
}

export interface Progress {
  share: number;
  text: string;
}

// -- all of it

/** Where a run comes from. What end users are not told is empty. */
export interface Head extends Stamped {
  workflow: string;
  digest: string;
  app: string;
  user: string;
  parent: string;
  /** The model that answers for all agents, if the run was started with one. */
  model: string | null;
  startedAt: number;
  correlation: string;
}

export interface RunView {
  readonly run: string;
  /** The last event; 0: none has come. */
  readonly seq: number;
  /** When the last event was. */
  readonly at: number;
  readonly heads: Log<Head>;
  readonly events: Log<WireEvent>;
  readonly byKind: ReadonlyMap<string, Log<WireEvent>>;
  readonly items: Log<ChatItem>;
  /** What hooks made of what an agent said, by the event of its item. */
  readonly sent: ReadonlyMap<number, { seq: number; text: string }>;
  readonly turns: Log<Turn>;
  readonly turnOf: ReadonlyMap<number, Turn>;
  readonly turnEnds: ReadonlyMap<number, TurnEnd>;
  /** The turns that undo a turn, by its number. */
  readonly undoneBy: ReadonlyMap<number, Log<Turn>>;
  readonly calls: ReadonlyMap<string, Call>;
  readonly results: ReadonlyMap<string, CallResult>;
  readonly requests: ReadonlyMap<string, Request>;
  readonly closed: ReadonlyMap<string, Closed>;
  readonly spans: Log<Span>;
  readonly spanEnds: ReadonlyMap<string, SpanEnd>;
  readonly phases: Log<Phase>;
  readonly variables: ReadonlyMap<string, Log<Change>>;
  readonly spending: Log<Spending>;
  /** The agents in the order of their first turns. */
  readonly agents: Log<{ seq: number; agent: string; index: number }>;
  /** Text of model calls under way, by call; progress of tools, by the event that called them. */
  readonly drafts: ReadonlyMap<number, Draft>;
  readonly progress: ReadonlyMap<number, Progress>;
  /** What `reduceRun` must know of the last event; nothing that may be shown. */
  readonly tail: Tail;
}

export interface Tail {
  /** The turns under way, with the calls of each that have no result yet. */
  active: Map<number, Set<string>>;
  /** The turns of a group that wait for the others. */
  done: Set<number>;
  /** The questions that are open, and the timers of next attempts at steps. */
  open: Set<string>;
  waits: Set<string>;
  isBoard: boolean;
  /** What models asked tools for, by the id of the call. */
  asked: Map<string, { tool: string; arguments: Record<string, unknown> }>;
  /** The last thing an agent said, by turn. */
  said: Map<number, AgentItem>;
  /** Values that do not count yet, by the turn or the path of a fork that has set them. */
  held: Map<string, Map<string, Change>>;
  /** What a variable was before a group had joined the value of a turn, by turn and name. */
  before: Map<string, Change>;
}

export function emptyView(run: string): RunView {
  return {
    run,
    seq: 0,
    at: 0,
    heads: new Log(),
    events: new Log(),
    byKind: new Map(),
    items: new Log(),
    sent: new Map(),
    turns: new Log(),
    turnOf: new Map(),
    turnEnds: new Map(),
    undoneBy: new Map(),
    calls: new Map(),
    results: new Map(),
    requests: new Map(),
    closed: new Map(),
    spans: new Log(),
    spanEnds: new Map(),
    phases: new Log(),
    variables: new Map(),
    spending: new Log(),
    agents: new Log(),
    drafts: new Map(),
    progress: new Map(),
    tail: {
      active: new Map(),
      done: new Set(),
      open: new Set(),
      waits: new Set(),
      isBoard: false,
      asked: new Map(),
      said: new Map(),
      held: new Map(),
      before: new Map(),
    },
  };
}
