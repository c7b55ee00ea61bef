/**
 * When values of variables begin to count. What a member of a group or a step sets is its own until
 * the group has joined, or the step has ended; in the path of a fork, until that has joined.
 */
import type { ForkedEvent, JoinedEvent, VariableSetEvent } from "../protocol/frames";
import { Log } from "./log";
import type { Change, Entry, RunView } from "./view";

type Held = ReadonlyMap<string, Change>;

/** Let a value count from an event on. */
export function setValue(view: RunView, change: Change): void {
  const variables = view.variables as Map<string, Log<Change>>;
  variables.set(change.name, (variables.get(change.name) ?? new Log<Change>()).added(change));
}

export function onVariableSet(view: RunView, event: VariableSetEvent): void {
  const { seq, ts, turn, actor, cause } = event;
  const change: Change = { seq, ts, turn, actor, cause, event: seq, ...event.data };
  const isOwn = view.tail.active.has(turn) && (isMember(view, turn) || isStep(view, turn));
  if (isOwn) hold(view, scopeOf(turn), change);
  else setValue(view, change);
}

/** Apply the values of a step that has ended to its line of steps. */
export function releaseStep(view: RunView, at: Entry): void {
  if (isMember(view, at.turn)) return;
  apply(view, view.turnOf.get(at.turn)?.lane ?? "", take(view, scopeOf(at.turn)).values(), at);
}

export function dropValues(view: RunView, turn: number): void {
  view.tail.held.delete(scopeOf(turn));
}

/** Merge what the turns of a group, or the paths of a fork, have set. */
export function joinValues(view: RunView, event: JoinedEvent): void {
  const { fork = 0, turns = [], results } = event.data;
  const forked = view.byKind.get("Forked")?.until(fork).at(-1) as ForkedEvent | undefined;
  const paths = (forked?.data.members ?? [])
    .map((name, index) => ({ name, scope: `${fork}.${index}` }))
    .filter(({ name }) => results?.[name] !== "failed");
  const scopes = results ? paths.map(({ scope }) => scope) : turns.map(scopeOf);
  const lane = forked?.data.lane ?? "";
  const merged = new Map<string, Change>();
  for (const held of scopes.map((scope) => take(view, scope))) {
    for (const [name, change] of held) {
      if (change.writer === "computed" && !results) continue; // It follows from the others.
      const first = merged.get(name);
      if (first !== undefined) view.tail.before.set(`${change.turn} ${name}`, first);
      const value = first ? merge(present(view, lane, name), first.value, change.value) : change.value;
      merged.set(name, { ...change, value });
    }
  }
  apply(view, lane, merged.values(), event);
}

/** Take back what a group had joined and could not: the value before it counts again. */
export function onRefused(view: RunView, at: Entry, name: string): void {
  const before = view.tail.before.get(`${at.turn} ${name}`);
  if (before !== undefined) setValue(view, { ...before, seq: at.seq });
}

function apply(view: RunView, lane: string, changes: Iterable<Change>, at: Entry): void {
  for (const change of changes) {
    if (lane) hold(view, lane, change);
    else setValue(view, { ...change, seq: at.seq });
  }
}

function hold(view: RunView, scope: string, change: Change): void {
  const held = view.tail.held.get(scope) ?? new Map<string, Change>();
  view.tail.held.set(scope, held.set(change.name, change));
}

function take(view: RunView, scope: string): Held {
  const held = view.tail.held.get(scope) ?? new Map<string, Change>();
  view.tail.held.delete(scope);
  return held;
}

function present(view: RunView, lane: string, name: string): unknown {
  const change = view.tail.held.get(lane)?.get(name) ?? view.variables.get(name)?.last(view.seq);
  return change?.value;
}

/** Merge two parallel values as the engine does: lists are extended, objects updated. */
function merge(base: unknown, first: unknown, second: unknown): unknown {
  const length = Array.isArray(base) ? base.length : 0;
  if (same(first, second)) return first;
  if (Array.isArray(first) && Array.isArray(second)) return [...first, ...second.slice(length)];
  if (isObject(first) && isObject(second)) {
    const was = isObject(base) ? base : {};
    const news = Object.entries(second).filter(([key, value]) => !same(was[key], value));
    return { ...first, ...Object.fromEntries(news) };
  }
  return first;
}

function isMember(view: RunView, turn: number): boolean {
  return (view.turnOf.get(turn)?.fork ?? 0) > 0;
}

function isStep(view: RunView, turn: number): boolean {
  return !view.tail.isBoard && (view.turnOf.get(turn)?.step ?? "") !== "";
}

function scopeOf(turn: number): string {
  return `turn ${turn}`;
}

function same(one: unknown, other: unknown): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
