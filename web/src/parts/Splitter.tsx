import { useRef, useState } from "react";
import type { KeyboardEvent, PointerEvent, ReactNode } from "react";

import styles from "./Splitter.module.css";

export interface SplitterProps {
  left: ReactNode;
  right: ReactNode;
  /** The place is kept under this name, and read out. */
  name: string;
  /** The share of the left pane at first, in percent. */
  start?: number;
}

const LEAST = 25;
const MOST = 75;
const STEP = 2;

/** Two panes and the line between them, which is moved with the mouse or the arrow keys. */
export function Splitter({ left, right, name, start = 46 }: SplitterProps) {
  const key = `weft.split.${name}`;
  const [share, setShare] = useState(() => clamp(Number(localStorage.getItem(key)) || start));
  const box = useRef<HTMLDivElement>(null);

  function move(value: number) {
    const next = clamp(value);
    setShare(next);
    localStorage.setItem(key, String(next));
  }

  function drag(event: PointerEvent<HTMLDivElement>) {
    if (!event.currentTarget.hasPointerCapture(event.pointerId) || !box.current) return;
    const area = box.current.getBoundingClientRect();
    move(((event.clientX - area.left) / area.width) * 100);
  }

  function press(event: KeyboardEvent) {
    const places: Record<string, number> = {
      ArrowLeft: share - STEP,
      ArrowRight: share + STEP,
      Home: LEAST,
      End: MOST,
    };
    const place = places[event.key];
    if (place === undefined) return;
    event.preventDefault();
    move(place);
  }

  return (
    <div ref={box} className={styles.splitter} style={{ "--share": `${share}%` }}>
      <div className={styles.pane}>{left}</div>
      <div
        role="separator"
        aria-orientation="vertical"
        aria-label={`Width of ${name}`}
        aria-valuemin={LEAST}
        aria-valuemax={MOST}
        aria-valuenow={Math.round(share)}
        tabIndex={0}
        className={styles.line}
        onPointerDown={(event) => event.currentTarget.setPointerCapture(event.pointerId)}
        onPointerMove={drag}
        onDoubleClick={() => move(start)}
        onKeyDown={press}
      />
      <div className={styles.pane}>{right}</div>
    </div>
  );
}

function clamp(share: number): number {
  return Math.min(MOST, Math.max(LEAST, share));
}
