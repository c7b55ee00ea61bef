import { readSpec } from "../../graph/spec";
import type { Handoff } from "../../graph/spec";
import type { PackageAnswer } from "../../protocol/api";
import { variablesAt } from "../../run/select";
import type { RunView } from "../../run/view";

export function handoffOf(pack: PackageAnswer | null, rule: number | null): Handoff | undefined {
  return rule === null || !pack ? undefined : readSpec(pack.spec).handoffs?.[rule];
}

export interface Declared {
  name: string;
  type: string;
  value: unknown;
  /** The value that it begins with. */
  start?: unknown;
  description?: string;
  /** Where its first value comes from. */
  source?: string;
  /** The agents that are told its value; null: all. */
  readers?: readonly string[] | null;
}

/** The variables that a fork may change, with their values after an event. */
export function declaredAt(pack: PackageAnswer | null, view: RunView, seq: number): Declared[] {
  if (!pack) return [];
  const values = variablesAt(view, seq);
  return Object.entries(readSpec(pack.spec).variables ?? {})
    .filter(([, { secret }]) => !secret)
    .map(([name, { type, source, description, readers }]) => {
      const start = source.default ?? source.value ?? null;
      const set = values.get(name);
      return { name, type, start, value: set ? set.value : start, description, source: source.type, readers };
    });
}

/** The values of the variables that a condition names, after an event. */
export function valuesIn(
  condition: string,
  pack: PackageAnswer | null,
  view: RunView,
  seq: number,
): Declared[] {
  const words = new Set(condition.replaceAll(/'[^']*'|"[^"]*"/g, "").match(/[A-Za-z_]\w*/g));
  return declaredAt(pack, view, seq).filter(({ name }) => words.has(name));
}

/** The texts that a `literal["a", "b"]` allows; null for other types. */
export function literalsOf(type: string): string[] | null {
  const inside = /^literal\[(.*)\]$/s.exec(type)?.[1];
  if (inside === undefined) return null;
  try {
    const values: unknown = JSON.parse(`[${inside}]`);
    return Array.isArray(values) && values.every((each) => typeof each === "string") ? values : null;
  } catch {
    return null;
  }
}
