import { useEffect, useState } from "react";

import { setQuery, useRoute } from "../../app/url";
import type { RunState } from "../../run/store";

/** The event up to which everything is shown. It is in the address: `?at=`. */
export interface Cursor {
  seq: number;
  /** The end is shown, and followed. */
  isLive: boolean;
  /** Move to an event; null: to the end, which then is followed. */
  setAt: (seq: number | null) => void;
  /** Move by a number of events. */
  step: (by: number) => void;
}

export function useCursor({ view, isCaughtUp }: RunState): Cursor {
  const at = Number(useRoute().query.get("at")) || null;
  const isLive = at === null || (isCaughtUp && at >= view.seq);
  const seq = isLive ? view.seq : Math.min(at ?? 0, view.seq);

  function setAt(next: number | null) {
    setQuery({ at: next === null || next >= view.seq ? null : String(Math.max(1, next)) });
  }

  function step(by: number) {
    // Not every number is there: end users are not sent all events.
    const index = view.events.count(seq) - 1 + by;
    setAt(view.events.at(Math.max(0, index))?.seq ?? null);
  }

  return { seq, isLive, setAt, step };
}

export const SPEEDS = [0.5, 1, 2, 4, 8, 16] as const;

/** Pauses of a run are played as if they were between these, in milliseconds. */
const LEAST = 250;
const MOST = 2000;

export interface Player {
  isPlaying: boolean;
  speed: number;
  setSpeed: (speed: number) => void;
  toggle: () => void;
}

/** Moves the cursor from event to event, as fast as they came or faster, while `?play=` is there. */
export function usePlayer({ view, isCaughtUp }: RunState, { seq, isLive }: Cursor): Player {
  const isPlaying = useRoute().query.has("play");
  const [speed, setSpeed] = useState(1);
  const index = isLive ? 0 : view.events.count(seq);
  const next = view.events.at(index);
  const pause = (next?.ts ?? 0) - (view.events.at(index - 1)?.ts ?? 0);
  const wait = isLive ? 0 : Math.min(MOST, Math.max(LEAST, pause)) / speed;
  const isEnd = !next || next.seq >= view.seq;
  const at = isEnd ? null : String(next.seq);

  useEffect(() => {
    if (!isPlaying || !isCaughtUp) return;
    const timer = setTimeout(() => setQuery(at === null ? { at, play: null } : { at }), wait);
    return () => clearTimeout(timer);
  }, [isPlaying, isCaughtUp, at, wait]);

  return { isPlaying, speed, setSpeed, toggle: () => setQuery({ play: isPlaying ? null : "1" }) };
}
