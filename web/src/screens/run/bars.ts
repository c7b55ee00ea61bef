import { eventAt, spanEndAt, spansAt } from "../../run/select";
import type { RunView, Span } from "../../run/view";

/** What took time: a model call, a tool, a wait. */
export interface Bar {
  span: Span;
  /** The turn that it belongs to, or follows. */
  turn: number;
  isFirst: boolean;
  words: string;
  end: number;
  error: string | null;
}

/** The bars of a run, and where a time stands from 0 to 1. Pauses are folded to short ones. */
export function barsAt(view: RunView, seq: number): { bars: Bar[]; scale: (ts: number) => number } {
  const now = view.events.last(seq)?.ts ?? 0;
  const spans = spansAt(view, seq);
  const busy = new Set(spans.filter(({ kind }) => kind !== "turn").map(({ turn }) => turn));
  const bars = spans
    // A turn is the bars of what it does; one that does nothing is a bar itself.
    .filter(({ kind, turn }) => kind !== "turn" || !busy.has(turn))
    .map((span): Bar => {
      const end = spanEndAt(view, span.id, seq);
      const turn = span.turn || (view.turns.last(span.seq)?.number ?? 0);
      const words = wordsOf(view, span);
      return { span, turn, words, isFirst: false, end: end?.ts ?? now, error: end?.error ?? null };
    })
    .sort((one, other) => one.turn - other.turn || one.span.seq - other.span.seq);
  for (const [index, bar] of bars.entries()) bar.isFirst = bar.turn !== bars[index - 1]?.turn;
  // A tool that asks waits as well.
  const asking = new Set([...view.requests.values()].map(({ call }) => `call ${call}`));
  const work = bars.filter(({ span }) => span.kind !== "waiting" && !asking.has(span.id));
  return { bars, scale: foldedScale(work.map(({ span, end }) => [span.start, end])) };
}

function wordsOf(view: RunView, { id, seq, kind, name, agent }: Span): string {
  const event = eventAt(view, seq);
  if (event?.kind === "ContextAssembled") return `model, call ${event.data.call}`;
  if (event?.kind === "RequestOpened" && event.data.kind === "chat") return "waits for a message";
  if (kind === "waiting") return `waits: ${name}`;
  if (kind === "retrieval") return `reads ${name}`;
  return name || agent || id;
}

/** A pause is this share of the time of all work, all pauses together at most that. */
const PAUSE = 0.04;
const PAUSES = 0.4;

/** Return where a time stands if what lies between these stretches is short. */
function foldedScale(stretches: readonly [number, number][]): (ts: number) => number {
  const work: { from: number; to: number; at: number }[] = [];
  for (const [from, to] of [...stretches].sort(([one], [other]) => one - other)) {
    const last = work.at(-1);
    if (last && from <= last.to) last.to = Math.max(last.to, to);
    else work.push({ from, to, at: 0 });
  }
  const worked = work.reduce((sum, { from, to }) => sum + to - from, 0) || 1;
  const pause = Math.min(PAUSE, PAUSES / Math.max(1, work.length)) * worked;
  let total = 0;
  for (const stretch of work) {
    stretch.at = total;
    total += stretch.to - stretch.from + pause;
  }
  return (ts) => {
    let [low, high] = [0, work.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (work[middle]!.from <= ts) low = middle + 1;
      else high = middle;
    }
    const { from, to, at } = work[Math.max(0, low - 1)] ?? { from: ts, to: ts, at: 0 };
    const inside = ts > to ? to - from + pause : Math.max(0, ts - from);
    return Math.min(1, (at + inside) / total);
  };
}
