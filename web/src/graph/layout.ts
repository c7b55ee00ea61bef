// Where the nodes of a graph stand. The worker calls it; nothing here touches the document.

import { graphlib, layout } from "@dagrejs/dagre";

import { sizeOf } from "./boxes";
import type { Box, Placed } from "./boxes";
import type { GraphModel } from "./nodes";

/** Above this, the optimal ranks take too long to find. */
const MANY_NODES = 60;

export function placeGraph(model: GraphModel): Placed {
  const graph = new graphlib.Graph({ compound: model.clusters.length > 0 });
  graph.setGraph({
    rankdir: "TB",
    ranksep: 68,
    nodesep: 32,
    ranker: model.nodes.length > MANY_NODES ? "tight-tree" : "network-simplex",
  });
  for (const name of model.clusters) graph.setNode(frameId(name), {});
  for (const node of model.nodes) {
    graph.setNode(node.id, sizeOf(node));
    if (node.cluster) graph.setParent(node.id, frameId(node.cluster));
  }
  for (const edge of model.edges) {
    const words = model.kind === "flow" ? edge.words.join(" or ") : "";
    const label = words ? { width: Math.min(200, words.length * 7), height: 20 } : {};
    graph.setEdge(edge.source, edge.target, { ...label, labelpos: "c" });
  }
  layout(graph);
  return {
    boxes: Object.fromEntries(model.nodes.map(({ id }) => [id, boxAt(graph.node(id))])),
    frames: Object.fromEntries(model.clusters.map((id) => [id, boxAt(graph.node(frameId(id)))])),
    lines: Object.fromEntries(
      model.edges.map((edge) => [edge.id, graph.edge(edge.source, edge.target).points]),
    ),
  };
}

function frameId(cluster: string): string {
  return `frame:${cluster}`;
}

/** Dagre gives centres. */
function boxAt({ x, y, width, height }: Box): Box {
  return { x: x - width / 2, y: y - height / 2, width, height };
}
