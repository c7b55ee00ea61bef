// Written by scripts/web_types.py; `make generate` writes it anew. Do not edit.

import type { ArtifactAnswer, ProblemAnswer } from "./api";

export const VERSION = 1;

/** A tool call that a model asks for; its id is unique in the run. */
export interface ToolRequest {
  id: string;
  tool: string;
  arguments: Record<string, unknown>;
  error: string;
}

/** The cost of a model call; None where it is not known. */
export interface Usage {
  input_tokens: number | null;
  output_tokens: number | null;
  cached_tokens: number | null;
  cost_usd: number | null;
}

/** What components and providers gave an agent of a board before it works. */
export interface BoardInput {
  verdict?: "continue" | "skip" | "defer" | "block";
  seconds?: number;
  detail?: string;
  inputs?: Record<string, unknown>[];
  state?: Record<string, unknown>;
  slices?: Record<string, unknown>[];
  engines?: number[];
}

/** What was assembled for a step of a flow before it works. */
export interface StepInput {
  context?: Record<string, unknown> | null;
  messages?: Record<string, unknown>[] | null;
  ms?: number;
  exception?: Record<string, unknown>;
}

/** A run begins: of which workflow, for whom, and with which values. */
export interface RunStartedEvent extends Envelope {
  kind: "RunStarted";
  data: {
    workflow: string;
    digest?: string;
    app?: string;
    user?: string;
    values?: Record<string, unknown>;
    with_message?: boolean;
    model?: string | null;
    format?: number;
    given?: string[];
    input?: Record<string, unknown> | null;
    correlation?: string;
    collects?: string;
    schedule?: string;
    name?: string;
  };
}

/** The events before this one were copied from another run. */
export interface RunForkedEvent extends Envelope {
  kind: "RunForked";
  data: {
    parent: string;
    seq: number;
    model: string | null;
  };
}

/** The workflow itself tells the user something; no agent sees it. */
export interface MessageShownEvent extends Envelope {
  kind: "MessageShown";
  data: {
    text: string;
  };
}

/** An agent takes a turn; the envelope has the number of the turn. */
export interface TurnStartedEvent extends Envelope {
  kind: "TurnStarted";
  data: {
    agent: string;
    fork?: number;
    step?: string;
    inputs?: string[];
    lane?: string;
    attempt?: number;
    undoes?: number;
  };
}

/** The prompt of an agent: origins, sizes, what was left out, and the hash of its text. */
export interface ContextAssembledEvent extends Envelope {
  kind: "ContextAssembled";
  data: {
    agent: string;
    call: number;
    manifest: Record<string, unknown>;
    digest: string;
  };
}

/** A model answered: which of the calls of its turn. */
export interface ModelRepliedEvent extends Envelope {
  kind: "ModelReplied";
  data: {
    call: number;
    text: string;
    tool_requests?: ToolRequest[];
    usage?: Usage;
    model?: string;
    answerer: "model" | "sample" | "designer" | "you" | "replay" | "script";
    finish_reason?: string;
    instead_of?: string;
    shown?: string | null;
    held?: boolean;
    retries?: string[];
    output_error?: string;
  };
}

/** A model gave no usable answer, after all attempts. */
export interface ModelFailedEvent extends Envelope {
  kind: "ModelFailed";
  data: {
    call: number;
    error: string;
    attempts: number;
    retries: string[];
  };
}

/** A reply is not valid; its agent gets the error and tries again. */
export interface OutputRefusedEvent extends Envelope {
  kind: "OutputRefused";
  data: {
    call: number;
    error: string;
  };
}

/** A tool is about to be called. */
export interface ToolCalledEvent extends Envelope {
  kind: "ToolCalled";
  data: {
    id: string;
    tool: string;
    arguments: Record<string, unknown>;
    auto: boolean;
    hook: "before_chat" | "after_chat" | "before_agent" | "after_agent" | "on_start" | "on_complete" | "on_fail" | "update_agent_state" | "process_message_before_send" | "process_last_received_message" | "process_all_messages_before_reply" | "computed" | "trigger" | "handoff" | "engine" | "publish" | "post_publish" | "error" | "step" | "apply" | null;
    variable: string;
  };
}

/** A tool gave its result. */
export interface ToolReturnedEvent extends Envelope {
  kind: "ToolReturned";
  data: {
    id: string;
    value: unknown;
    progress: [number, string] | null;
    abandoned_by: string;
  };
}

/** A tool gave no result, and why. */
export interface ToolFailedEvent extends Envelope {
  kind: "ToolFailed";
  data: {
    id: string;
    error: string;
    kind: "error" | "timeout" | "refused" | "retry" | "unknown";
    exception: Record<string, unknown> | null;
    abandoned_by: string;
  };
}

/** A tool asked a model during its call. */
export interface ModelConsultedEvent extends Envelope {
  kind: "ModelConsulted";
  data: {
    call: string;
    digest: string;
    text: string;
    usage: Usage;
    model: string;
    answerer: "model" | "sample" | "designer" | "you" | "replay" | "script";
  };
}

/** A tool shows a person something without waiting. */
export interface SurfaceShownEvent extends Envelope {
  kind: "SurfaceShown";
  data: {
    call?: string;
    number?: number;
    tool: string;
    component: string;
    mode: "inline" | "artifact";
    payload: unknown;
  };
}

/** The reply of an agent after its hooks, or after its automatic tool has accepted it. */
export interface MessageSentEvent extends Envelope {
  kind: "MessageSent";
  data: {
    agent: string;
    text: string;
    held?: boolean;
  };
}

/**
 * What a turn needs from outside was read; values of variables are in events beside it.
 *
 * `found` has for each origin the query and the time it took, `errors` why nothing was read.
 */
export interface ContextFetchedEvent extends Envelope {
  kind: "ContextFetched";
  data: {
    found: Record<string, unknown>;
    errors: Record<string, string>;
    tools: Record<string, Record<string, unknown>[]> | null;
    board: BoardInput | null;
    step: StepInput | null;
    error: string;
  };
}

/** The document of an entity variable was written, or why not. */
export interface DocumentWrittenEvent extends Envelope {
  kind: "DocumentWritten";
  data: {
    name: string;
    seq: number;
    error: string;
  };
}

/**
 * The condition of a handoff was judged; `error` says why there is no verdict.
 *
 * Either a model has judged, or descriptions were compared with `text`: then `scores` has the
 * similarity of each, by rule.
 */
export interface ConditionJudgedEvent extends Envelope {
  kind: "ConditionJudged";
  data: {
    rule: number;
    holds: boolean;
    text: string;
    error: string;
    usage: Usage;
    model: string;
    answerer: "model" | "sample" | "designer" | "you" | "replay" | "script";
    scores: Record<string, number>;
  };
}

/** A variable has a new value. */
export interface VariableSetEvent extends Envelope {
  kind: "VariableSet";
  data: {
    name: string;
    value: unknown;
    writer: string;
  };
}

/** A value for a variable was not valid; the variable keeps its value. */
export interface VariableRefusedEvent extends Envelope {
  kind: "VariableRefused";
  data: {
    name: string;
    writer: string;
    error: string;
  };
}

/** A person is asked something. */
export interface RequestOpenedEvent extends Envelope {
  kind: "RequestOpened";
  data: {
    id: string;
    kind: "chat" | "ui";
    agent: string;
    tool: string | null;
    call?: string | null;
    number?: number;
    payload: unknown;
    digest?: string;
    expires_at: number | null;
    otherwise?: unknown;
    sets?: string[];
    component: string;
    mode: string;
    addressee: string;
  };
}

/** A person answered. */
export interface RequestAnsweredEvent extends Envelope {
  kind: "RequestAnswered";
  data: {
    id: string;
    value: unknown;
    user: string;
    message_id?: string | null;
    role?: string;
  };
}

/** A request was not answered in time. */
export interface RequestExpiredEvent extends Envelope {
  kind: "RequestExpired";
  data: {
    id: string;
  };
}

/** An agent is done with its turn. */
export interface TurnEndedEvent extends Envelope {
  kind: "TurnEnded";
  data: {
    agent: string;
  };
}

/** A turn failed; its run fails with it, unless its group or its mode continues. */
export interface TurnFailedEvent extends Envelope {
  kind: "TurnFailed";
  data: {
    agent: string;
    error: string;
    kind: "model" | "output" | "tool" | "deadline" | "source" | "hook" | "guard" | "low_confidence" | "rejected";
    failure: Record<string, unknown> | null;
  };
}

/**
 * The turn passes to another agent, a group, the user, or the end.
 *
 * `rule` is the index of the handoff that decided, if one did. `evaluated` has the rules that were
 * evaluated, in order, and whether the condition of each holds.
 */
export interface HandedOffEvent extends Envelope {
  kind: "HandedOff";
  data: {
    source: string;
    target: string;
    why: "rule" | "fallback" | "pattern" | "default" | "start" | "reply_limit" | "joined" | "chosen";
    rule: number | null;
    evaluated: Record<string, boolean>;
  };
}

/** The members of a group take their turns in parallel from here on. */
export interface ForkedEvent extends Envelope {
  kind: "Forked";
  data: {
    name: string;
    members: string[];
    lane: string;
  };
}

/** A group is done: the messages and values of these turns are merged. */
export interface JoinedEvent extends Envelope {
  kind: "Joined";
  data: {
    name: string;
    fork?: number;
    turns?: number[];
    text: string | null;
    results?: Record<string, string> | null;
  };
}

/** A flow continues elsewhere than at the next step, and why. */
export interface BranchedEvent extends Envelope {
  kind: "Branched";
  data: {
    source: string;
    target: string;
    why: "case" | "otherwise" | "again" | "done" | "limit" | "low_confidence" | "failure" | "recovery" | "rejected" | "timed_out";
    lane: string;
  };
}

/** Something is due at a time. */
export interface TimerSetEvent extends Envelope {
  kind: "TimerSet";
  data: {
    id: string;
    at: number;
    why: "deadline" | "trigger" | "board" | "flow";
  };
}

/** The time of a timer has come. */
export interface TimerFiredEvent extends Envelope {
  kind: "TimerFired";
  data: {
    id: string;
  };
}

/** An artifact was published, with the subscriptions that want it. */
export interface ArtifactPublishedEvent extends Envelope {
  kind: "ArtifactPublished";
  data: {
    type: string;
    payload: unknown;
    by: string;
    id: string;
    tags: string[];
    partition: string;
    visibility: Record<string, unknown>;
    delay: number;
    wakes: Record<string, string>;
    forwarded_to: Record<string, string>;
    counts: string[];
    errors: Record<string, string>;
    direct: string;
    version: number;
  };
}

/** An artifact of another run arrived, for a subscription that collects across correlations. */
export interface ArtifactArrivedEvent extends Envelope {
  kind: "ArtifactArrived";
  data: {
    mail: string;
    id: string;
    type: string;
    payload: unknown;
    by: string;
    subscription: string;
    key: string;
    correlation: string;
    created_at: number;
    tags: string[];
    partition: string;
    visible_at: number;
  };
}

/** Artifacts did not reach a subscription, and why. */
export interface DeliveryMissedEvent extends Envelope {
  kind: "DeliveryMissed";
  data: {
    subscription: string;
    artifacts: string[];
    why: "failed" | "expired" | "no_key" | "predicate" | "wake_limit" | "skipped" | "blocked" | "unfinished";
    detail: string;
  };
}

/** A component defers a delivery; it is tried again at a time. */
export interface DeliveryDeferredEvent extends Envelope {
  kind: "DeliveryDeferred";
  data: {
    subscription: string;
    artifacts: string[];
    at: number;
  };
}

/** All batches are delivered now, including those that are not full. */
export interface BatchesFlushedEvent extends Envelope {
  kind: "BatchesFlushed";
  data: {
    user: string;
  };
}

/** The run is asked to end: now, or after the turn under way. */
export interface StopRequestedEvent extends Envelope {
  kind: "StopRequested";
  data: {
    mode: "now" | "after_turn";
    user: string;
  };
}

/** The run is about to end; its last hooks and documents come first. */
export interface RunEndingEvent extends Envelope {
  kind: "RunEnding";
  data: {
    outcome: "completed" | "failed" | "cancelled" | "max_turns";
    reason: string;
  };
}

/** The run has ended. */
export interface RunEndedEvent extends Envelope {
  kind: "RunEnded";
  data: {
    outcome: "completed" | "failed" | "cancelled" | "max_turns";
    reason?: string;
  };
}

export type WireEvent =
  | RunStartedEvent
  | RunForkedEvent
  | MessageShownEvent
  | TurnStartedEvent
  | ContextAssembledEvent
  | ModelRepliedEvent
  | ModelFailedEvent
  | OutputRefusedEvent
  | ToolCalledEvent
  | ToolReturnedEvent
  | ToolFailedEvent
  | ModelConsultedEvent
  | SurfaceShownEvent
  | MessageSentEvent
  | ContextFetchedEvent
  | DocumentWrittenEvent
  | ConditionJudgedEvent
  | VariableSetEvent
  | VariableRefusedEvent
  | RequestOpenedEvent
  | RequestAnsweredEvent
  | RequestExpiredEvent
  | TurnEndedEvent
  | TurnFailedEvent
  | HandedOffEvent
  | ForkedEvent
  | JoinedEvent
  | BranchedEvent
  | TimerSetEvent
  | TimerFiredEvent
  | ArtifactPublishedEvent
  | ArtifactArrivedEvent
  | DeliveryMissedEvent
  | DeliveryDeferredEvent
  | BatchesFlushedEvent
  | StopRequestedEvent
  | RunEndingEvent
  | RunEndedEvent;

/** What every event has around its data. */
export interface Envelope {
  v: number;
  seq: number;
  /** Milliseconds since 1970. */
  ts: number;
  run: string;
  /** 0: of the run itself. */
  turn: number;
  actor: string;
  /** The event that made this one happen; 0: it came from outside. */
  cause: number;
}

interface Live {
  v: number;
  run: string;
  turn: number;
}

/** Streamed text, a model call that is repeated, the progress of a tool. None has a number. */
export type Delta =
  | (Live & { kind: "delta"; data: { call: number; offset: number; text: string } })
  | (Live & { kind: "retry"; data: { call: number; text: string } })
  | (Live & {
      kind: "progress";
      data: { call: number; tool: string; share: number; text: string };
    });

export type Ack =
  | { v: number; kind: "ack"; id: string; ok: true; run?: string; seq?: number; workflow?: string }
  | { v: number; kind: "ack"; id: string | null; ok: false; problem: ProblemAnswer };

/** About the delivery itself. */
export type Control =
  | Ack
  | { v: number; kind: "caught_up" | "boundary" | "snapshot_needed"; run: string; seq: number }
  | { v: number; kind: "artifact"; workflow: string; cursor: string; artifact: ArtifactAnswer }
  | { v: number; kind: "gap"; workflow: string; cursor: string }
  | { v: number; kind: "ping" };

export type Frame = WireEvent | Delta | Control;

/** Answer an open request. */
export interface Answer {
  value: unknown;
  v?: 1;
  id: string;
  cmd: "answer";
  run: string;
  request: string;
}

/** Stop a run. */
export interface Cancel {
  mode?: "now" | "after_turn";
  v?: 1;
  id: string;
  cmd: "cancel";
  run: string;
}

/** Close an open request without an answer. */
export interface CancelRequest {
  v?: 1;
  id: string;
  cmd: "cancel_request";
  run: string;
  request: string;
}

/** Send everything of a run after an event; again, from there. */
export interface Follow {
  v?: 1;
  id: string;
  cmd: "follow";
  run: string;
  after?: number;
}

/** Send the changes of a board. */
export interface FollowBoard {
  v?: 1;
  id: string;
  cmd: "follow_board";
  workflow: string;
  after?: string | null;
}

/** Repeat a turn of a run with other values, as a new run. */
export interface Fork {
  turn?: number | null;
  at?: number | null;
  edits?: Record<string, unknown>;
  message?: string | null;
  model?: string | null;
  v?: 1;
  id: string;
  cmd: "fork";
  run: string;
}

/** Say something in a run that waits for it. */
export interface Message {
  text: string;
  v?: 1;
  id: string;
  cmd: "message";
  run: string;
}

/** The answer to a ping. */
export interface Pong {
  v?: 1;
  id?: string;
  cmd: "pong";
}

/** Continue a run that has stopped, or repeat the failed turn of one. */
export interface Retry {
  v?: 1;
  id: string;
  cmd: "retry";
  run: string;
}

/** Start a run. */
export interface Start {
  workflow: string;
  message?: string | null;
  values?: Record<string, unknown> | null;
  input?: Record<string, unknown> | null;
  model?: string | null;
  run?: string | null;
  force?: boolean;
  v?: 1;
  id: string;
  cmd: "start";
}

/** Send nothing more of a run or a board. */
export interface Unfollow {
  v?: 1;
  id: string;
  cmd: "unfollow";
  run?: string | null;
  workflow?: string | null;
}

export type Command = Follow | FollowBoard | Unfollow | Message | Answer | CancelRequest | Cancel | Retry | Fork | Start | Pong;
