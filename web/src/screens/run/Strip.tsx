import { ChevronLeft, ChevronRight, Pause, Play } from "lucide-react";
import { useEffect, useRef } from "react";

import { useTheme } from "../../app/theme";
import { agentColor, Button } from "../../parts";
import { activeAt, eventAt, threadOf, turnUnder } from "../../run/select";
import type { RunView } from "../../run/view";
import { SPEEDS } from "./cursor";
import type { Cursor, Player } from "./cursor";
import styles from "./Strip.module.css";

interface StripProps {
  view: RunView;
  cursor: Cursor;
  player: Player;
}

/** Who had the turn when, and the place in it: drawn under a slider. */
export function Strip({ view, cursor, player }: StripProps) {
  const { seq, isLive, setAt, step } = cursor;
  const turn = turnUnder(view, seq);
  const event = eventAt(view, seq);
  const isAtWork = isLive && activeAt(view, seq).length > 0;
  return (
    <section className={styles.strip} aria-label="Course of the run">
      <div className={styles.buttons}>
        <Button variant="bare" icon={<ChevronLeft />} aria-label="Event before" onClick={() => step(-1)} />
        <Button
          variant="bare"
          icon={player.isPlaying ? <Pause /> : <Play />}
          aria-label={player.isPlaying ? "Pause" : "Play"}
          onClick={player.toggle}
        />
        <Button variant="bare" icon={<ChevronRight />} aria-label="Next event" onClick={() => step(1)} />
        <select
          aria-label="Speed"
          className={styles.speed}
          value={player.speed}
          onChange={(change) => player.setSpeed(Number(change.target.value))}
        >
          {SPEEDS.map((speed) => (
            <option key={speed} value={speed}>
              {speed}×
            </option>
          ))}
        </select>
      </div>
      <div className={styles.course}>
        <Lanes view={view} />
        <input
          type="range"
          aria-label="Event"
          aria-valuetext={`Event ${seq} of ${view.seq}${event ? `, ${event.kind}` : ""}`}
          className={`${styles.range} ${isLive ? styles.live : ""}`}
          min={1}
          max={Math.max(2, view.seq)}
          value={seq}
          onChange={(change) => setAt(Number(change.target.value))}
        />
      </div>
      <p className={styles.place}>
        {turn && (
          <span>
            <b>turn {turn.number}</b> {turn.step || turn.agent}
          </span>
        )}
        <span className={styles.event}>
          {isLive ? `${isAtWork ? "live" : "the end"} · event ${seq}` : `event ${seq} of ${view.seq}`}
        </span>
      </p>
    </section>
  );
}

const MOST_LANES = 8;
const LINE = 4;
/** Half the width of the thumb of the slider: the first and the last event are this far inside. */
const INSET = 8;

function Lanes({ view }: { view: RunView }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const theme = useTheme();

  useEffect(() => {
    const element = canvas.current;
    if (!element) return;
    const redraw = () => draw(element, view);
    const observer = new ResizeObserver(redraw);
    const media = matchMedia("(prefers-color-scheme: dark)");
    observer.observe(element);
    media.addEventListener("change", redraw);
    return () => {
      observer.disconnect();
      media.removeEventListener("change", redraw);
    };
  }, [view, theme]);

  return <canvas ref={canvas} className={styles.lanes} aria-hidden="true" />;
}

function draw(canvas: HTMLCanvasElement, view: RunView): void {
  const context = canvas.getContext("2d");
  const { clientWidth: width, clientHeight: height } = canvas;
  if (!context || width === 0) return;
  canvas.width = width * devicePixelRatio;
  canvas.height = height * devicePixelRatio;
  context.scale(devicePixelRatio, devicePixelRatio);
  context.lineCap = "round";
  const color = colorsOf(canvas);
  const threads = Math.max(1, view.agents.length);
  const lanes = Math.min(MOST_LANES, threads);
  const x = (seq: number) => INSET + ((seq - 1) / Math.max(1, view.seq - 1)) * (width - 2 * INSET);
  const y = (thread: number) => (height * (Math.min(thread, lanes - 1) + 1)) / (lanes + 1);

  context.lineWidth = 1;
  context.strokeStyle = color("var(--line)");
  for (let lane = 0; lane < lanes; lane++) line(context, INSET, y(lane), width - INSET, y(lane));

  let before: { x: number; y: number; color: string } | null = null;
  for (const span of view.spans.until(view.seq)) {
    if (span.kind !== "turn") continue;
    const end = view.spanEnds.get(span.id);
    const thread = threadOf(view, span.agent);
    const own = color(end?.error ? "var(--madder)" : agentColor(thread));
    const from = x(span.seq) + LINE / 2;
    const to = Math.max(from, x(end?.seq ?? view.seq) - LINE / 2);
    if (before && before.y !== y(thread) && before.x <= from) {
      context.lineWidth = 1.5;
      context.strokeStyle = before.color;
      context.beginPath();
      context.moveTo(before.x, before.y);
      context.bezierCurveTo(from, before.y, before.x, y(thread), from, y(thread));
      context.stroke();
    }
    context.lineWidth = LINE;
    context.strokeStyle = own;
    line(context, from, y(thread), to, y(thread));
    before = { x: to, y: y(thread), color: own };
  }
  context.fillStyle = color("var(--weld-solid)");
  for (const span of view.spans.until(view.seq)) {
    if (span.kind !== "waiting") continue;
    context.beginPath();
    context.arc(x(span.seq), y(Math.min(threadOf(view, span.agent), threads - 1)), 4.5, 0, 2 * Math.PI);
    context.fill();
  }
}

function line(context: CanvasRenderingContext2D, x1: number, y1: number, x2: number, y2: number): void {
  context.beginPath();
  context.moveTo(x1, y1);
  context.lineTo(x2, y2);
  context.stroke();
}

/** A canvas knows no custom properties: what they are in this theme is asked of the element. */
function colorsOf(canvas: HTMLCanvasElement): (name: string) => string {
  const known = new Map<string, string>();
  return (name) => {
    if (!known.has(name)) {
      canvas.style.color = name;
      known.set(name, getComputedStyle(canvas).color);
    }
    return known.get(name)!;
  };
}
