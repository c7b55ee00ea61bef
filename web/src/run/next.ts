/** The view while an event is added to it, and the changes that several kinds of events share. */
import type { WireEvent } from "../protocol/frames";
import type { Stamped } from "./log";
import type { ChatItem, RunView, Span } from "./view";

/** Nobody reads it yet. */
export type Next = { -readonly [K in keyof RunView]: RunView[K] };

export function entry(event: WireEvent): { seq: number; ts: number; turn: number } {
  return { seq: event.seq, ts: event.ts, turn: event.turn };
}

export function say(next: Next, item: ChatItem): void {
  next.items = next.items.added(item);
}

export function trouble(
  next: Next,
  event: WireEvent,
  agent: string,
  what: "reply" | "model",
  error: string,
  attempts = 1,
): void {
  say(next, { ...entry(event), kind: "trouble", agent, what, error, reason: null, attempts });
}

/** The agent of a turn, or who acts: in a flow, "agent:NAME/STEP"; end users may not see the turn. */
export function agentOf(next: Next, event: WireEvent): string {
  return agentOfTurn(next, event.turn) || event.actor.replace(/^agent:/, "");
}

export function agentOfTurn(next: Next, turn: number): string {
  return next.turnOf.get(turn)?.agent ?? "";
}

export function openCalls(next: Next, turn: number): Set<string> {
  const calls = next.tail.active.get(turn) ?? new Set<string>();
  next.tail.active.set(turn, calls);
  return calls;
}

export function beginSpan(
  next: Next,
  event: WireEvent,
  id: string,
  kind: Span["kind"],
  name: string,
  agent: string,
  ms = 0,
): void {
  next.spans = next.spans.added({ ...entry(event), id, kind, name, agent, start: event.ts - ms });
}

export function endSpan(
  next: Next,
  id: string,
  event: Stamped & { ts: number },
  error: string | null,
  name = "",
): void {
  if (!next.spanEnds.has(id)) put(next.spanEnds, id, { seq: event.seq, ts: event.ts, error, name });
}

export function dropDrafts(next: Next, isOver: (draft: { call: number; turn: number }) => boolean): void {
  const kept = [...next.drafts].filter(([, draft]) => !isOver(draft));
  if (kept.length !== next.drafts.size) next.drafts = new Map(kept);
}

export function dropProgress(next: Next, call: number): void {
  if (!next.progress.has(call)) return;
  const progress = new Map(next.progress);
  progress.delete(call);
  next.progress = progress;
}

/** Add to a map that readers of older views share: what they do not know yet, they do not ask. */
export function put<K, V>(map: ReadonlyMap<K, V>, key: K, value: V): void {
  (map as Map<K, V>).set(key, value);
}
