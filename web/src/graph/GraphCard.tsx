import type { NodeProps } from "@xyflow/react";
import { CornerDownLeft, Square } from "lucide-react";
import type { CSSProperties } from "react";

import type { CardNode, FrameNode } from "./toFlow";
import styles from "./WorkflowGraph.module.css";

export function GraphCard({ data }: NodeProps<CardNode>) {
  const { node, visits, mark, onSelect } = data;
  const classes = [styles.card, styles[node.kind], mark ? styles[mark] : ""];
  if (data.isUntouched) classes.push(styles.untouched);
  if (data.isSelected) classes.push(styles.selected);
  const shape = {
    className: classes.join(" "),
    style: { "--card": data.color } as CSSProperties,
  };
  const content = (
    <>
      <span className={styles.head}>
        <strong title={node.title}>{node.title}</strong>
        {visits > 0 && (node.kind !== "artifact" || visits > 1) && (
          <span className={styles.visits} title={`${visits} times`}>
            ×{visits}
          </span>
        )}
      </span>
      {(node.about || mark) && (
        <span className={styles.about} title={node.about}>
          {[node.about, mark].filter((word) => word && word !== "done").join(" · ")}
        </span>
      )}
      {(node.toUser || node.toEnd) && (
        <span className={styles.ways}>
          {node.toUser && (
            <span>
              <CornerDownLeft aria-hidden="true" /> user
            </span>
          )}
          {node.toEnd && (
            <span>
              <Square aria-hidden="true" fill="currentColor" /> end
            </span>
          )}
        </span>
      )}
    </>
  );
  if (!onSelect) return <div {...shape}>{content}</div>;
  return (
    <button type="button" {...shape} aria-pressed={data.isSelected} onClick={onSelect}>
      {content}
    </button>
  );
}

export function GraphFrame({ data }: NodeProps<FrameNode>) {
  return <div className={styles.frame}>{data.title}</div>;
}
