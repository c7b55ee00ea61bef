/** The one fold: from what is known of a run and the next event to what is known then. */
import type {
  ContextFetchedEvent,
  ModelRepliedEvent,
  RequestOpenedEvent,
  RunStartedEvent,
  ToolCalledEvent,
  ToolFailedEvent,
  ToolReturnedEvent,
  TurnFailedEvent,
  TurnStartedEvent,
  Usage,
  WireEvent,
} from "../protocol/frames";
import { Log } from "./log";
import {
  agentOf,
  agentOfTurn,
  beginSpan,
  dropDrafts,
  dropProgress,
  endSpan,
  entry,
  openCalls,
  put,
  say,
  trouble,
  type Next,
} from "./next";
import {
  dropValues,
  joinValues,
  onRefused,
  onVariableSet,
  releaseStep,
  setValue,
} from "./values";
import {
  addUsage,
  NOTHING_SPENT,
  type AgentItem,
  type CallResult,
  type Closed,
  type EventOf,
  type Phase,
  type RunView,
  type Turn,
} from "./view";

/** Return the view after an event; the same one if it has come before. */
export function reduceRun(view: RunView, event: WireEvent): RunView {
  if (event.seq <= view.seq) return view;
  const next: Next = { ...view, seq: event.seq, at: event.ts, events: view.events.added(event) };
  put(view.byKind, event.kind, (view.byKind.get(event.kind) ?? new Log<WireEvent>()).added(event));
  if (view.phases.at(view.phases.length - 1)?.status === "ended") return next;
  apply(next, event);
  addPhase(next, event);
  return next;
}

export function reduceAll(view: RunView, events: Iterable<WireEvent>): RunView {
  let found = view;
  for (const event of events) found = reduceRun(found, event);
  return found;
}

function apply(next: Next, event: WireEvent): void {
  switch (event.kind) {
    case "RunStarted":
      return onRunStarted(next, event);
    case "RunForked":
      return onRunForked(next, event);
    case "MessageShown":
      return say(next, { ...entry(event), kind: "note", text: event.data.text });
    case "TurnStarted":
      return onTurnStarted(next, event);
    case "ContextAssembled":
      return beginSpan(next, event, `model ${event.seq}`, "model", "", agentOf(next, event));
    case "ModelReplied":
      return onModelReplied(next, event);
    case "ModelFailed":
      endSpan(next, `model ${event.cause}`, event, event.data.error);
      dropDrafts(next, (draft) => draft.call === event.cause);
      return trouble(next, event, agentOf(next, event), "model", event.data.error, event.data.attempts);
    case "OutputRefused":
      return trouble(next, event, agentOfTurn(next, event.turn), "reply", event.data.error);
    case "ToolCalled":
      return onToolCalled(next, event);
    case "ToolReturned":
    case "ToolFailed":
      return onToolDone(next, event);
    case "ModelConsulted":
      return spend(next, event, event.data.usage, event.data.model);
    case "ConditionJudged":
      return spend(next, event, event.data.usage, event.data.model);
    case "MessageSent":
      return onMessageSent(next, event);
    case "SurfaceShown": {
      const { tool, component, mode, payload } = event.data;
      return say(next, { ...entry(event), kind: "surface", tool, component, mode, payload });
    }
    case "ContextFetched":
      return onContextFetched(next, event);
    case "VariableSet":
      return onVariableSet(next, event);
    case "VariableRefused":
      return onRefused(next, event, event.data.name);
    case "RequestOpened":
      return onRequestOpened(next, event);
    case "RequestAnswered":
      return onRequestAnswered(next, event);
    case "RequestExpired":
      if (next.requests.get(event.data.id)?.kind !== "chat") {
        close(next, event.data.id, event, "expired");
      }
      return;
    case "TurnEnded":
      return onTurnEnded(next, event);
    case "TurnFailed":
      return onTurnFailed(next, event);
    case "HandedOff": {
      const { source, target, why, rule, evaluated } = event.data;
      return say(next, { ...entry(event), kind: "handoff", source, target, why, rule, evaluated });
    }
    case "Forked": {
      const { name, members } = event.data;
      return say(next, { ...entry(event), kind: "forked", name, members });
    }
    case "Joined":
      return onJoined(next, event);
    case "Branched": {
      const { source, target, why } = event.data;
      return say(next, { ...entry(event), kind: "branch", source, target, why });
    }
    case "TimerSet":
      if (event.data.why === "flow" && event.data.id.startsWith("retry:")) {
        next.tail.waits.add(event.data.id);
      }
      return;
    case "TimerFired":
      next.tail.waits.delete(event.data.id);
      return;
    case "ArtifactPublished":
    case "ArtifactArrived": {
      const { id, type, by, payload } = event.data;
      const isNew = event.kind === "ArtifactPublished";
      const wakes = isNew ? Object.keys(event.data.wakes) : [event.data.subscription];
      return say(next, {
        ...entry(event), kind: "artifact", id, type, by, payload, wakes, arrived: !isNew,
      });
    }
    case "StopRequested": {
      const { mode, user } = event.data;
      return say(next, { ...entry(event), kind: "stop", mode, user });
    }
    case "RunEnding":
      return closeAll(next, event);
    case "RunEnded": {
      closeAll(next, event);
      const { outcome, reason = "" } = event.data;
      return say(next, { ...entry(event), kind: "end", outcome, reason });
    }
    default:
      return; // Kept in `events`; it shows nothing of its own.
  }
}

// -- the run

function onRunStarted(next: Next, event: RunStartedEvent): void {
  const { workflow, digest = "", app = "", user = "", model = null, correlation = "" } = event.data;
  const { values = {}, input = null, collects, schedule } = event.data;
  const { seq, ts, turn, actor, cause } = event;
  next.heads = next.heads.added({
    seq, workflow, digest, app, user, model, correlation, parent: "", startedAt: ts,
  });
  next.tail.isBoard = Boolean(correlation || collects || schedule);
  for (const [name, value] of Object.entries(values)) {
    const writer = "start";
    setValue(next, { seq, ts, turn, actor, cause, event: seq, name, value, writer });
  }
  say(next, { ...entry(event), kind: "start", workflow, input });
}

function onRunForked(next: Next, event: EventOf<"RunForked">): void {
  const { parent, seq: from, model } = event.data;
  const head = next.heads.at(next.heads.length - 1);
  if (head !== undefined) {
    const own = { parent, startedAt: event.ts, model: model ?? head.model };
    next.heads = next.heads.added({ ...head, ...own, seq: event.seq });
  }
  // The time and the cost so far are those of the other run.
  const usage = { input_tokens: 0, output_tokens: 0, cached_tokens: 0, cost_usd: 0 };
  next.spending = next.spending.added({
    ...entry(event), agent: "", model: "", usage, total: NOTHING_SPENT,
  });
  say(next, { ...entry(event), kind: "copied", parent, from });
}

/** Close everything that is open: nothing of it will have a result. */
function closeAll(next: Next, event: WireEvent): void {
  const { tail } = next;
  for (const turn of [...tail.active.keys()]) {
    endSpan(next, `turn ${turn}`, event, null);
    closeTurn(next, turn, event);
  }
  for (const id of [...tail.open]) close(next, id, event, "cancelled");
  tail.waits.clear();
  tail.held.clear();
  dropDrafts(next, () => true);
}

// -- turns

function onTurnStarted(next: Next, event: TurnStartedEvent): void {
  const { seq, ts, turn: number } = event;
  const { agent, fork = 0, step = "", lane = "", attempt = 1, undoes = 0 } = event.data;
  const { inputs = [] } = event.data;
  const turn: Turn = { seq, ts, number, agent, fork, step, lane, attempt, undoes, inputs };
  next.turns = next.turns.added(turn);
  put(next.turnOf, number, turn);
  next.tail.active.set(number, new Set());
  if (undoes) {
    put(next.undoneBy, undoes, (next.undoneBy.get(undoes) ?? new Log<Turn>()).added(turn));
  }
  if (!next.agents.until(seq).some((known) => known.agent === agent)) {
    next.agents = next.agents.added({ seq, agent, index: next.agents.length });
  }
  if (step && !next.tail.isBoard) {
    say(next, { ...entry(event), kind: "step", step, attempt, undoes });
  }
  beginSpan(next, event, `turn ${number}`, "turn", step || agent, agent);
}

function onTurnEnded(next: Next, event: EventOf<"TurnEnded">): void {
  if (!next.tail.active.has(event.turn)) return;
  const end = { seq: event.seq, ts: event.ts, error: null, kind: null, failure: null };
  put(next.turnEnds, event.turn, end);
  endSpan(next, `turn ${event.turn}`, event, null);
  releaseStep(next, event);
  if (next.turnOf.get(event.turn)?.fork) next.tail.done.add(event.turn);
  else closeTurn(next, event.turn, event);
}

function onTurnFailed(next: Next, event: TurnFailedEvent): void {
  const { agent, error, kind, failure } = event.data;
  const { seq, ts, turn } = event;
  put(next.turnEnds, turn, { seq, ts, error, kind, failure });
  endSpan(next, `turn ${turn}`, event, error);
  closeTurn(next, turn, event);
  say(next, { ...entry(event), kind: "trouble", agent, what: "turn", error, reason: kind, attempts: 1 });
}

function onJoined(next: Next, event: EventOf<"Joined">): void {
  const { name, fork = 0, text, results = null } = event.data;
  joinValues(next, event);
  for (const turn of [...next.tail.active.keys()]) {
    if (fork && next.turnOf.get(turn)?.fork === fork) {
      endSpan(next, `turn ${turn}`, event, null);
      closeTurn(next, turn, event);
    }
  }
  say(next, { ...entry(event), kind: "joined", name, text, results });
}

/** Close what is open for a turn that is over; what it has held back is dropped. */
function closeTurn(next: Next, turn: number, event: WireEvent): void {
  const { tail } = next;
  for (const call of tail.active.get(turn) ?? []) {
    endSpan(next, `call ${call}`, event, "cancelled");
    const seq = next.calls.get(call)?.seq;
    if (seq !== undefined) dropProgress(next, seq);
  }
  for (const id of [...tail.open]) {
    const request = next.requests.get(id);
    if (request?.turn === turn && request.kind !== "chat") close(next, id, event, "cancelled");
  }
  tail.active.delete(turn);
  tail.done.delete(turn);
  tail.said.delete(turn);
  dropValues(next, turn);
  dropDrafts(next, (draft) => draft.turn === turn);
}

// -- what agents say

function onModelReplied(next: Next, event: ModelRepliedEvent): void {
  const { text, shown, tool_requests = [], usage, model = "", answerer } = event.data;
  const agent = agentOf(next, event);
  endSpan(next, `model ${event.cause}`, event, null, model);
  dropDrafts(next, (draft) => draft.call === event.cause);
  if (usage !== undefined) spend(next, event, usage, model);
  for (const { id, tool, arguments: given } of tool_requests) {
    next.tail.asked.set(id, { tool, arguments: given });
    next.tail.active.get(event.turn)?.add(id);
  }
  next.tail.said.delete(event.turn);
  if (!text.trim()) return;
  const item: AgentItem = {
    ...entry(event),
    kind: "agent",
    agent,
    text: shown ?? text,
    isHeld: event.data.held ?? false,
    raw: typeof shown === "string" ? text : null,
    call: event.cause,
    answerer,
    model,
    finish: event.data.finish_reason ?? "",
    insteadOf: event.data.instead_of ?? "",
    retries: event.data.retries ?? [],
  };
  next.tail.said.set(event.turn, item);
  say(next, item);
}

function onMessageSent(next: Next, event: EventOf<"MessageSent">): void {
  const { agent, text, held } = event.data;
  if (held) return; // Its automatic tool has still to accept it.
  const said = next.tail.said.get(event.turn);
  if (said !== undefined) {
    put(next.sent, said.seq, { seq: event.seq, text: (text === said.raw && said.text) || text });
    return;
  }
  say(next, {
    ...entry(event), kind: "agent", agent, text, isHeld: false, raw: null, call: 0, answerer: null, model: "",
    finish: "", insteadOf: "", retries: [],
  });
}

function spend(next: Next, event: WireEvent, usage: Usage, model: string): void {
  const total = addUsage(next.spending.last(event.seq)?.total ?? NOTHING_SPENT, usage);
  const agent = agentOfTurn(next, event.turn);
  next.spending = next.spending.added({ ...entry(event), agent, model, usage, total });
}

// -- tools and questions

function onToolCalled(next: Next, event: ToolCalledEvent): void {
  const { id, tool, arguments: given, auto, hook, variable } = event.data;
  const agent = agentOfTurn(next, event.turn);
  put(next.calls, id, { ...entry(event), id, tool, agent, arguments: given, auto, hook, variable });
  openCalls(next, event.turn).add(id);
  if (hook === "handoff") return;
  const name = hook === "computed" || hook === "trigger" ? `${variable} (${tool})` : tool;
  beginSpan(next, event, `call ${id}`, hook ? "hook" : "tool", name, agent);
  if (!hook) say(next, { ...entry(event), kind: "tool", call: id });
}

function onToolDone(next: Next, event: ToolReturnedEvent | ToolFailedEvent): void {
  const { id, abandoned_by: abandonedBy } = event.data;
  if (next.results.has(id)) return;
  const failed = event.kind === "ToolFailed" ? event.data : null;
  const result: CallResult = {
    seq: event.seq,
    ts: event.ts,
    value: event.kind === "ToolReturned" ? event.data.value : null,
    error: failed?.error ?? null,
    failure: failed?.kind ?? null,
    abandonedBy,
  };
  put(next.results, id, result);
  const call = next.calls.get(id);
  const asked = next.tail.asked.get(id);
  if (call === undefined) {
    // A model asked for what cannot be called.
    const agent = agentOfTurn(next, event.turn);
    const more = { agent, auto: false, hook: null, variable: "" };
    const { tool, arguments: given } = asked ?? { tool: "", arguments: {} };
    put(next.calls, id, { ...entry(event), id, tool, arguments: given, ...more });
    say(next, { ...entry(event), kind: "tool", call: id });
  } else {
    dropProgress(next, call.seq);
  }
  openCalls(next, event.turn).delete(id);
  next.tail.asked.delete(id);
  for (const request of [...next.tail.open]) {
    if (next.requests.get(request)?.call === id) close(next, request, event, "cancelled");
  }
  endSpan(next, `call ${id}`, event, result.error);
}

function onRequestOpened(next: Next, event: RequestOpenedEvent): void {
  const { id, kind, agent, tool, call = null, payload, component, mode, addressee } = event.data;
  const { expires_at: expiresAt, sets = [] } = event.data;
  put(next.requests, id, {
    ...entry(event), id, kind, agent, tool, call, payload, expiresAt, component, mode, addressee,
    sets,
  });
  next.tail.open.add(id);
  beginSpan(next, event, `request ${id}`, "waiting", tool ?? agent, agent);
  if (kind === "ui") say(next, { ...entry(event), kind: "request", id });
}

function onRequestAnswered(next: Next, event: EventOf<"RequestAnswered">): void {
  const { id, value, user, role = "" } = event.data;
  if (!next.tail.open.has(id)) return;
  close(next, id, event, "answered", { value, user, role });
  if (next.requests.get(id)?.kind === "chat") {
    const text = value === null ? null : String(value);
    say(next, { ...entry(event), kind: "user", text, user });
  }
}

function close(
  next: Next,
  id: string,
  event: WireEvent,
  how: Closed["how"],
  answer = { value: null as unknown, user: "", role: "" },
): void {
  if (!next.tail.open.delete(id)) return;
  put(next.closed, id, { seq: event.seq, ts: event.ts, how, ...answer });
  endSpan(next, `request ${id}`, event, null);
}

/** What was read from outside stands in one event, with the time each part took. */
function onContextFetched(next: Next, event: ContextFetchedEvent): void {
  const { found, errors, board, step, error } = event.data;
  const origins = [...new Set([...Object.keys(found), ...Object.keys(errors)])].map((name) => {
    const note = found[name] as { ms?: number } | undefined;
    return { name, ms: note?.ms ?? 0, error: errors[name] ?? null };
  });
  const slices = (board?.slices ?? []).map(({ provider, ms, error: wrong }) => ({
    name: String(provider), ms: Number(ms), error: wrong ? String(wrong) : null,
  }));
  const context = step ? [{ name: "context", ms: step.ms ?? 0, error: error || null }] : [];
  [...origins, ...slices, ...context].forEach((read, index) => {
    const id = `read ${event.seq}.${index}`;
    beginSpan(next, event, id, "retrieval", read.name, agentOfTurn(next, event.turn), read.ms);
    endSpan(next, id, event, read.error);
  });
}

// -- status

/** Begin a phase if the run does something else after this event than before it. */
function addPhase(next: Next, event: WireEvent): void {
  const last = next.phases.at(next.phases.length - 1);
  const status = event.kind === "RunEnded" ? "ended" : statusOf(next);
  const isCopied = event.kind === "RunForked";
  if (last?.status === status && !isCopied) return;
  const since = last === undefined ? 0 : Math.max(0, event.ts - last.ts);
  const phase: Phase = {
    seq: event.seq,
    ts: event.ts,
    status,
    outcome: event.kind === "RunEnded" ? event.data.outcome : null,
    reason: event.kind === "RunEnded" ? (event.data.reason ?? "") : "",
    worked: isCopied ? 0 : (last?.worked ?? 0) + (last?.status === "working" ? since : 0),
    waited: isCopied ? 0 : (last?.waited ?? 0) + (last?.status === "waiting" ? since : 0),
  };
  next.phases = next.phases.added(phase);
}

/** A run waits if somebody or a time is awaited, and nothing can be done before. */
function statusOf(next: Next): "working" | "waiting" {
  const { active, open, waits, isBoard } = next.tail;
  const mayWait = open.size > 0 || waits.size > 0 || isBoard;
  return mayWait && ![...active.keys()].some((turn) => isWorking(next, turn)) ? "waiting" : "working";
}

function isWorking(next: Next, turn: number): boolean {
  const { active, open, done } = next.tail;
  const calls = active.get(turn) ?? new Set();
  const asking = [...open].map((id) => next.requests.get(id)!).filter((one) => one.turn === turn);
  if (calls.size > 0) {
    return [...calls].some((call) => !asking.some((request) => request.call === call));
  }
  return turn !== 0 && !done.has(turn) && !asking.some((request) => request.kind === "ui");
}
