// What a graph is made of.

export type NodeKind =
  | "agent"
  | "group"
  | "artifact"
  | "step"
  | "branch"
  | "fork"
  | "approval"
  | "undo"
  | "start"
  | "end"
  | "undeclared";

export interface GraphNode {
  id: string;
  kind: NodeKind;
  title: string;
  /** What it is, in one line. */
  about: string;
  /** The number of the agent, which gives the colour; -1 for what no agent does. */
  thread: number;
  /** Ways out that are marks on the node and not lines. */
  toUser?: boolean;
  toEnd?: boolean;
  /** The group whose frame it stands in. */
  cluster?: string;
}

export interface GraphEdge {
  id: string;
  source: string;
  target: string;
  /** The conditions of all rules that share the line. */
  words: string[];
  /** An exceptional way: before a turn, after a failure, given directly. */
  isDashed: boolean;
}

export interface GraphModel {
  kind: "conversation" | "flow" | "board";
  nodes: GraphNode[];
  edges: GraphEdge[];
  /** The names of the groups that are drawn as frames. */
  clusters: string[];
}

export function edgeId(source: string, target: string): string {
  return `${source}>${target}`;
}

/** The id of the node of an artifact type. */
export function typeId(type: string): string {
  return `type:${type}`;
}

/** Lines by their ends: rules between the same two share one. */
export class Edges {
  readonly all = new Map<string, GraphEdge>();

  add(source: string, target: string, words = "", isDashed = false): void {
    const id = edgeId(source, target);
    const edge = this.all.get(id);
    if (!edge) {
      this.all.set(id, { id, source, target, words: words ? [words] : [], isDashed });
      return;
    }
    if (words && !edge.words.includes(words)) edge.words.push(words);
    edge.isDashed &&= isDashed;
  }
}

export function plainNode(id: string, kind: NodeKind): GraphNode {
  const about = kind === "undeclared" ? "not declared" : "";
  return { id, kind, title: id, about, thread: -1 };
}
