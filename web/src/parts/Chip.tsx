import type { ReactNode } from "react";

import styles from "./Chip.module.css";

export type Tone = "plain" | "live" | "wait" | "good" | "bad";

/** A word about a state. Each tone has its own mark, so that colour is never the only sign. */
export function Chip({ tone, children }: { tone: Tone; children: ReactNode }) {
  return (
    <span className={`${styles.chip} ${styles[tone]}`}>
      {tone !== "plain" && <span className={styles.mark} />}
      {children}
    </span>
  );
}

export interface StatusChipProps {
  row: { status: string; outcome?: string | null };
}

export function StatusChip({ row }: StatusChipProps) {
  const { tone, word } = statusOf(row);
  return <Chip tone={tone}>{word}</Chip>;
}

/** How the state of a run is shown. */
export function statusOf(row: StatusChipProps["row"]): { tone: Tone; word: string } {
  if (row.status === "running") return { tone: "live", word: "working" };
  if (row.status === "waiting") return { tone: "wait", word: "waiting" };
  if (row.outcome === "completed") return { tone: "good", word: "completed" };
  if (row.outcome === "cancelled") return { tone: "plain", word: "stopped" };
  return { tone: "bad", word: (row.outcome ?? "ended").replaceAll("_", " ") };
}
