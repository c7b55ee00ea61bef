// The placed model as what the graph library draws.

import type { FitViewOptions, Node } from "@xyflow/react";

import { agentColor } from "../parts";
import type { Placed, Point } from "./boxes";
import type { GraphLive, NodeMark } from "./live";
import type { GraphEdge, GraphModel, GraphNode } from "./nodes";

export const FIT: FitViewOptions = { padding: 0.08, maxZoom: 1 };

export interface CardData extends Record<string, unknown> {
  node: GraphNode;
  color: string;
  visits: number;
  mark: NodeMark | "working" | null;
  /** Of a run that has not come here. */
  isUntouched: boolean;
  isSelected: boolean;
  onSelect: (() => void) | null;
}

export interface Line {
  id: string;
  points: readonly Point[];
  words: string;
  color: string | null;
  isLast: boolean;
  isDashed: boolean;
}

export type CardNode = Node<CardData, "card">;
export type FrameNode = Node<{ title: string }, "frame">;

export function toNodes(
  model: GraphModel,
  placed: Placed,
  live: GraphLive | undefined,
  selected: string | null,
  onSelect: ((node: string) => void) | undefined,
): (CardNode | FrameNode)[] {
  const frames = Object.entries(placed.frames).map(([title, box]): FrameNode => {
    const position = { x: box.x, y: box.y };
    return { id: `frame:${title}`, type: "frame", position, ...sized(box), data: { title } };
  });
  const cards = model.nodes.flatMap((node): CardNode[] => {
    const box = placed.boxes[node.id];
    if (!box) return [];
    const canSelect = onSelect && node.kind !== "start" && node.kind !== "end";
    const data: CardData = {
      node,
      color: colorOf(node, live),
      visits: live?.visits.get(node.id) ?? 0,
      mark: live?.active.includes(node.id) ? "working" : (live?.marks?.get(node.id) ?? null),
      isUntouched: live !== undefined && !live.visits.has(node.id),
      isSelected: node.id === selected,
      onSelect: canSelect ? () => onSelect(node.id) : null,
    };
    return [{ id: node.id, type: "card", position: { x: box.x, y: box.y }, ...sized(box), data }];
  });
  return [...frames, ...cards];
}

/** The lines, those that were taken above the others. */
export function toLines(
  model: GraphModel,
  placed: Placed,
  live: GraphLive | undefined,
  selected: string | null,
): Line[] {
  const nodes = new Map(model.nodes.map((node) => [node.id, node]));
  const lines = model.edges.map((edge): Line => {
    const isTaken = live?.taken.has(edge.id) ?? false;
    const target = nodes.get(edge.target);
    return {
      id: edge.id,
      points: placed.lines[edge.id] ?? [],
      words: wordsOf(model, edge, live, isTaken, selected),
      color: isTaken && target ? colorOf(target, live) : null,
      isLast: live?.last === edge.id,
      isDashed: edge.isDashed,
    };
  });
  return lines.sort((a, b) => Number(a.color !== null) - Number(b.color !== null));
}

/** With its size given, a node is fitted into the picture before it has been in sight. */
function sized({ width, height }: { width: number; height: number }) {
  return { width, height, measured: { width, height } };
}

function colorOf(node: GraphNode, live: GraphLive | undefined): string {
  const thread = live?.threads ? (live.threads.get(node.id) ?? -1) : node.thread;
  return thread < 0 ? "var(--edge)" : agentColor(thread);
}

/** Many labels hide the picture: only those that say where the run went, or what was asked for. */
function wordsOf(
  model: GraphModel,
  edge: GraphEdge,
  live: GraphLive | undefined,
  isTaken: boolean,
  selected: string | null,
): string {
  if (isTaken && live?.words?.has(edge.id)) return live.words.get(edge.id) ?? "";
  const isAsked = model.kind === "flow" || isTaken || edge.source === selected;
  return isAsked ? edge.words.join(" or ") : "";
}
