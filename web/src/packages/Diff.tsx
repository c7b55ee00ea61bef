import styles from "./Diff.module.css";

/** A unified diff. */
export function Diff({ text, label }: { text: string; label: string }) {
  return (
    <pre className={styles.diff} tabIndex={0} role="region" aria-label={label}>
      {text.split("\n").map((line, index) => (
        <span key={index} className={lineStyle(line)}>
          {line || " "}
        </span>
      ))}
    </pre>
  );
}

function lineStyle(line: string): string | undefined {
  if (line.startsWith("+++") || line.startsWith("---")) return styles.file;
  if (line.startsWith("@@")) return styles.place;
  if (line.startsWith("+")) return styles.added;
  if (line.startsWith("-")) return styles.removed;
  return undefined;
}
