import "@xyflow/react/dist/base.css";

import { Controls, ReactFlow } from "@xyflow/react";
import type { NodeTypes, ReactFlowInstance } from "@xyflow/react";
import { useEffect, useMemo, useRef, useState } from "react";
import type { KeyboardEvent } from "react";

import { Bones, Empty } from "../parts";
import type { PackageAnswer } from "../protocol/api";
import { GraphCard, GraphFrame } from "./GraphCard";
import { GraphLines } from "./GraphLines";
import type { GraphLive } from "./live";
import { graphOf } from "./model";
import { FIT, toLines, toNodes } from "./toFlow";
import { useLayout } from "./useLayout";
import styles from "./WorkflowGraph.module.css";

export interface WorkflowGraphProps {
  spec: PackageAnswer["spec"];
  /** What a run has done so far. */
  live?: GraphLive;
  selected?: string | null;
  /** Called with the id of a node: the name of an agent or a step, `type:NAME` of artifacts. */
  onSelect?: (node: string) => void;
}

const NODE_TYPES: NodeTypes = { card: GraphCard, frame: GraphFrame };

/** How far an arrow key moves the picture, and how many nodes make a search worth while. */
const STEP = 80;
const MANY_NODES = 30;

/** Agents and rules, steps, or a board: drawn, and with `live` the state of a run in it. */
export default function WorkflowGraph({ spec, live, selected = null, onSelect }: WorkflowGraphProps) {
  const model = useMemo(() => graphOf(spec), [spec]);
  const placed = useLayout(model);
  const box = useRef<HTMLDivElement>(null);
  const [flow, setFlow] = useState<ReactFlowInstance | null>(null);
  const isMoved = useRef(false);

  const nodes = useMemo(
    () => (placed ? toNodes(model, placed, live, selected, onSelect) : []),
    [model, placed, live, selected, onSelect],
  );
  const lines = useMemo(
    () => (placed ? toLines(model, placed, live, selected) : []),
    [model, placed, live, selected],
  );

  // The picture stays whole when the dock is resized, until somebody moves it.
  useEffect(() => {
    if (!flow || !placed || !box.current) return;
    isMoved.current = false;
    const observer = new ResizeObserver(() => {
      if (!isMoved.current) void flow.fitView(FIT);
    });
    observer.observe(box.current);
    return () => observer.disconnect();
  }, [flow, placed]);

  function show(id: string): void {
    const at = placed?.boxes[id];
    if (!flow || !at) return;
    isMoved.current = true;
    void flow.setCenter(at.x + at.width / 2, at.y + at.height / 2, { zoom: 1 });
  }

  function move(event: KeyboardEvent): void {
    if (!flow || event.target !== box.current) return;
    const { x, y, zoom } = flow.getViewport();
    const moves: Record<string, () => unknown> = {
      ArrowLeft: () => flow.setViewport({ x: x + STEP, y, zoom }),
      ArrowRight: () => flow.setViewport({ x: x - STEP, y, zoom }),
      ArrowUp: () => flow.setViewport({ x, y: y + STEP, zoom }),
      ArrowDown: () => flow.setViewport({ x, y: y - STEP, zoom }),
      "+": () => flow.zoomIn(),
      "-": () => flow.zoomOut(),
      "0": () => flow.fitView(FIT),
    };
    if (!moves[event.key]) return;
    event.preventDefault();
    isMoved.current = event.key !== "0";
    moves[event.key]?.();
  }

  if (model.nodes.length === 0) return <Empty title="This workflow has no agents yet." />;
  if (!placed) return <Bones lines={3} />;
  return (
    <div
      ref={box}
      className={styles.graph}
      tabIndex={0}
      role="group"
      aria-label="Graph of the workflow. Arrow keys move it, plus and minus zoom, 0 shows all."
      onKeyDown={move}
    >
      {model.nodes.length > MANY_NODES && (
        <select
          className={styles.find}
          aria-label="Show a node"
          value=""
          onChange={(event) => show(event.target.value)}
        >
          <option value="">Find one of {model.nodes.length}…</option>
          {model.nodes.map((node) => (
            <option key={node.id} value={node.id}>
              {node.title}
            </option>
          ))}
        </select>
      )}
      <ReactFlow
        nodes={nodes}
        nodeTypes={NODE_TYPES}
        onInit={setFlow}
        onMoveStart={(event) => {
          if (event) isMoved.current = true;
        }}
        fitView
        fitViewOptions={FIT}
        minZoom={0.05}
        nodesDraggable={false}
        nodesConnectable={false}
        nodesFocusable={false}
        elementsSelectable={false}
        onlyRenderVisibleElements={model.nodes.length > MANY_NODES}
        disableKeyboardA11y
        proOptions={{ hideAttribution: true }}
      >
        <GraphLines lines={lines} />
        <Controls position="top-right" showInteractive={false} fitViewOptions={FIT} />
      </ReactFlow>
    </div>
  );
}
