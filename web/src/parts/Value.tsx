import { Download } from "lucide-react";

import { Button } from "./Button";
import styles from "./Value.module.css";

// More than this is not put into the document; it can be downloaded.
const SHOWN_AT_MOST = 20_000;

export interface ValueProps {
  value: unknown;
  /** Longer values are folded. */
  max?: number;
}

/** Any value of a run: short ones in the line, long ones unfolded on request. */
export function Value({ value, max = 120 }: ValueProps) {
  if (value === undefined) return <span className={styles.missing}>not known yet</span>;
  if (value === null || value === "") return <span className={styles.missing}>empty</span>;
  const text = valueText(value);
  const style = typeof value === "object" ? styles.data : styles.plain;
  if (text.length <= max && !text.includes("\n")) return <span className={style}>{text}</span>;
  const whole = typeof value === "object" ? JSON.stringify(value, null, 2) : text;
  return (
    <details className={styles.long}>
      <summary className={style}>{text.slice(0, max)}…</summary>
      <pre tabIndex={0}>{whole.slice(0, SHOWN_AT_MOST)}</pre>
      {whole.length > SHOWN_AT_MOST && (
        <Button icon={<Download />} onClick={() => download("value.txt", whole)}>
          Download all {whole.length.toLocaleString()} characters
        </Button>
      )}
    </details>
  );
}

/** A value in one line. */
export function valueText(value: unknown): string {
  return typeof value === "string" ? value : (JSON.stringify(value) ?? "");
}

export function download(name: string, text: string): void {
  const url = URL.createObjectURL(new Blob([text], { type: "text/plain" }));
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  URL.revokeObjectURL(url);
}
