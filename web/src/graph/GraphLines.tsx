import { EdgeLabelRenderer } from "@xyflow/react";
import { memo } from "react";

import type { Point } from "./boxes";
import type { Line } from "./toFlow";
import styles from "./WorkflowGraph.module.css";

const ARROW = 7;

/** All lines in one picture under the nodes: the library's own edges take long where there are many. */
export const GraphLines = memo(function GraphLines({ lines }: { lines: readonly Line[] }) {
  const drawn = lines.filter(({ points }) => points.length >= 2);
  return (
    <EdgeLabelRenderer>
      <svg className={styles.lines} aria-hidden="true">
        {drawn.map(({ id, points, color, isLast, isDashed }) => {
          const classes = [styles.line, color && styles.taken, isLast && styles.last, isDashed && styles.dashed];
          return (
            <g key={id} className={classes.filter(Boolean).join(" ")} style={{ color: color ?? undefined }}>
              <path d={curve(points)} fill="none" stroke="currentColor" />
              <path d={arrowHead(points)} fill="currentColor" />
            </g>
          );
        })}
      </svg>
      {drawn.map(({ id, points, words, isLast }) => {
        const middle = points[Math.floor(points.length / 2)] as Point;
        return (
          words && (
            <span
              key={id}
              className={`${styles.words} ${isLast ? styles.lastWords : ""}`}
              style={{ translate: `calc(${middle.x}px - 50%) calc(${middle.y}px - 50%)` }}
              title={words}
            >
              {words}
            </span>
          )
        );
      })}
    </EdgeLabelRenderer>
  );
});

/** A smooth way along points: it bends at each and runs through the middles between them. */
function curve(points: readonly Point[]): string {
  const [first, ...rest] = points;
  if (!first) return "";
  let path = `M${first.x},${first.y}`;
  if (rest.length === 1) return `${path}L${rest[0]?.x},${rest[0]?.y}`;
  for (const [index, bend] of rest.slice(0, -1).entries()) {
    const next = rest[index + 1] as Point;
    const isEnd = index === rest.length - 2;
    const x = isEnd ? next.x : (bend.x + next.x) / 2;
    const y = isEnd ? next.y : (bend.y + next.y) / 2;
    path += `Q${bend.x},${bend.y} ${x},${y}`;
  }
  return path;
}

function arrowHead(points: readonly Point[]): string {
  const tip = points.at(-1) as Point;
  const before = points.at(-2) as Point;
  const angle = Math.atan2(tip.y - before.y, tip.x - before.x);
  const corner = (turn: number) =>
    `${tip.x - ARROW * Math.cos(angle + turn)},${tip.y - ARROW * Math.sin(angle + turn)}`;
  return `M${tip.x},${tip.y}L${corner(0.45)}L${corner(-0.45)}Z`;
}
