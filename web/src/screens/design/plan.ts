import type { CommentBody, PlanChangeAnswer } from "../../protocol/api";

export type Entry = Readonly<Record<string, unknown>>;
type Part = NonNullable<CommentBody["part"]>;

/** The parts that a comment can be about, in the order in which they are made. */
const PARTS: Record<string, Part> = {
  PatternSelection: "pattern",
  WorkflowStrategy: "strategy",
  TechnicalBlueprint: "blueprint",
  ModuleAgents: "agents",
};

/** What was said of an element of the plan: its trail begins with the part of the plan. */
export interface Comment {
  trail: readonly string[];
  text: string;
}

/**
 * All comments as one, which is the answer to a plan.
 *
 * The agent of its part and all later ones work again, so that it is about the earliest part.
 */
export function joinComments(comments: readonly Comment[], general: string): CommentBody {
  const texts = comments.map(({ trail, text }) => `${text.trim()} (about ${trail.at(-1)})`);
  const all = [general.trim(), ...texts].filter(Boolean);
  const parts = comments.map(({ trail }) => PARTS[trail[0] ?? ""]);
  const order = Object.values(PARTS);
  const part = general.trim() ? undefined : order.find((each) => parts.includes(each));
  return { text: all.join("\n"), ...(part && { part }) };
}

/** What is new or changed in a round, by the part of the plan and the name of the element. */
export function marksOf(changes: readonly PlanChangeAnswer[]): Map<string, string> {
  const marks = new Map<string, string>();
  for (const { path, before, after } of changes) {
    const part = path.split(/[.[]/)[0] ?? "";
    const names = [...path.matchAll(/\[([^\]]+)\]/g)].map((found) => found[1] ?? "");
    const isWhole = path.endsWith("]");
    // What is gone has changed what it was in.
    if (isWhole && after === null) names.pop();
    const key = `${part}/${names.at(-1) ?? part}`;
    if (marks.get(key) !== "new") marks.set(key, isWhole && before === null ? "new" : "changed");
  }
  return marks;
}

/** What an element may be called in the keys of marks: without a number, by agent and tool. */
export function markKeys(part: string, name: string, entry: Entry): string[] {
  const names = [name, name.replace(/^Module \d+: /, ""), `${entry.agent}.${entry.tool}`];
  return names.map((each) => `${part}/${each}`);
}

export interface Module {
  entry: Entry;
  agents: readonly Entry[];
}

/** A plan as it is read: the strategy, its modules with their agents, the picture, other parts. */
export interface Composed {
  strategy: Entry;
  modules: readonly Module[];
  diagram: string;
  others: readonly (readonly [part: string, value: Entry])[];
}

export function compose(plan: Entry): Composed {
  const {
    version: _,
    WorkflowStrategy: whole = {},
    ModuleAgents: staff,
    MermaidSequenceDiagram: drawn = {},
    ...others
  } = plan as Record<string, Entry>;
  const { modules = [], ...strategy } = whole as Entry & { modules?: Entry[] };
  const staffed = Array.isArray(staff) ? (staff as { module_index: number; agents: Entry[] }[]) : [];
  return {
    strategy,
    modules: modules.map(({ module_index: index, pattern_id: __, agents_needed, ...entry }) => {
      const agents = staffed.filter((each) => each.module_index === index).flatMap((each) => each.agents);
      // Only names: what they are is said once.
      return { entry: agents.length ? entry : { ...entry, agents_needed }, agents };
    }),
    diagram: String(drawn.mermaid_diagram ?? ""),
    others: Object.entries(others),
  };
}
