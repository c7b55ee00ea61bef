// Boxes and lines of a placed graph, and the plain placing that needs no library.

import type { GraphModel, GraphNode } from "./nodes";

export interface Box {
  x: number;
  y: number;
  width: number;
  height: number;
}

export interface Point {
  x: number;
  y: number;
}

/** Boxes by node, frames by cluster, and the points of each line. */
export interface Placed {
  boxes: Record<string, Box>;
  frames: Record<string, Box>;
  lines: Record<string, Point[]>;
}

const WIDTH = 196;

export function sizeOf(node: GraphNode): { width: number; height: number } {
  if (node.kind === "start" || node.kind === "end") return { width: 104, height: 30 };
  if (node.kind === "artifact") return { width: 148, height: node.about ? 50 : 34 };
  return { width: WIDTH, height: node.toUser || node.toEnd ? 82 : 60 };
}

/** Plain columns, one for each step away from the first node: for graphs that take too long. */
export function placeInColumns(model: GraphModel): Placed {
  const depth = new Map<string, number>();
  const leaving = new Map<string, string[]>();
  for (const { source, target } of model.edges) {
    leaving.set(source, [...(leaving.get(source) ?? []), target]);
  }
  for (const root of model.nodes) {
    if (depth.has(root.id)) continue;
    const queue = [root.id];
    depth.set(root.id, 0);
    for (const id of queue) {
      for (const target of leaving.get(id) ?? []) {
        if (depth.has(target)) continue;
        depth.set(target, (depth.get(id) ?? 0) + 1);
        queue.push(target);
      }
    }
  }
  const boxes: Record<string, Box> = {};
  const filled = new Map<number, number>();
  for (const node of model.nodes) {
    const column = depth.get(node.id) ?? 0;
    const row = filled.get(column) ?? 0;
    filled.set(column, row + 1);
    boxes[node.id] = { x: column * (WIDTH + 80), y: row * 110, ...sizeOf(node) };
  }
  const lines = Object.fromEntries(
    model.edges.map((edge) => [edge.id, [middle(boxes[edge.source]), middle(boxes[edge.target])]]),
  );
  return { boxes, frames: {}, lines };
}

function middle(box: Box | undefined): Point {
  return box ? { x: box.x + box.width / 2, y: box.y + box.height / 2 } : { x: 0, y: 0 };
}
