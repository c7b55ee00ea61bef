import { useEffect, useState } from "react";

const MINUTE = 60;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** A moment: the time of today, the day of this year, or the whole date. */
export function Time({ at }: { at: number }) {
  const moment = new Date(at);
  return (
    <time dateTime={moment.toISOString()} title={moment.toLocaleString()}>
      {formatTime(moment, new Date())}
    </time>
  );
}

/** How long ago `since` was, and it ticks. */
export function Clock({ since }: { since: number }) {
  const [now, setNow] = useState(Date.now);
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 1000);
    return () => clearInterval(timer);
  }, []);
  const seconds = Math.max(0, Math.floor((now - since) / 1000));
  return <Duration ms={seconds * 1000} />;
}

export function Duration({ ms }: { ms: number }) {
  return <span className="number">{formatDuration(ms)}</span>;
}

/** Two units at most: 421 ms, 4.3 s, 2 min 5 s, 2 h 7 min, 3 d 4 h. */
export function formatDuration(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  const seconds = ms / 1000;
  if (seconds < 9.95 && ms % 1000 !== 0) return `${seconds.toFixed(1)} s`;
  const whole = Math.round(seconds);
  if (whole < MINUTE) return `${whole} s`;
  if (whole < HOUR) return twoUnits(whole, MINUTE, "min", 1, "s");
  if (whole < DAY) return twoUnits(whole, HOUR, "h", MINUTE, "min");
  return twoUnits(whole, DAY, "d", HOUR, "h");
}

function twoUnits(seconds: number, large: number, name: string, small: number, rest: string) {
  const below = Math.floor((seconds % large) / small);
  return `${Math.floor(seconds / large)} ${name}${below ? ` ${below} ${rest}` : ""}`;
}

function formatTime(moment: Date, now: Date): string {
  if (moment.toDateString() === now.toDateString()) {
    return moment.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
  }
  const isThisYear = moment.getFullYear() === now.getFullYear();
  return moment.toLocaleDateString([], {
    day: "numeric",
    month: "short",
    ...(isThisYear ? {} : { year: "numeric" }),
  });
}
