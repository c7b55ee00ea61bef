import styles from "./Mark.module.css";

/** The sign of Weft: two threads that cross. */
export function Mark() {
  return (
    <svg viewBox="0 0 32 32" width="28" height="28" aria-hidden="true" className={styles.mark}>
      <rect width="32" height="32" rx="7" />
      <path className={styles.one} d="M6 11c5 0 5 10 10 10s5-10 10-10" />
      <path className={styles.two} d="M6 21c5 0 5-10 10-10s5 10 10 10" />
    </svg>
  );
}
