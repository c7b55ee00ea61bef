// What of a run the graph shows.

export type NodeMark = "done" | "failed" | "undone" | "waiting";

export interface GraphLive {
  /** The nodes at work. */
  active: readonly string[];
  /** How many turns each node has taken. */
  visits: ReadonlyMap<string, number>;
  /** The ids of the lines that were taken (`edgeId`). */
  taken: ReadonlySet<string>;
  /** The line that was taken last. */
  last?: string;
  /** The condition that decided, by line. */
  words?: ReadonlyMap<string, string>;
  marks?: ReadonlyMap<string, NodeMark>;
  /** The colours of agents as in the rest of the run. */
  threads?: ReadonlyMap<string, number>;
}
