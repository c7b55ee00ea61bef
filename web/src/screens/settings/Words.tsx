import { Chip } from "../../parts";
import styles from "./Settings.module.css";

export function Words({ words }: { words: readonly string[] }) {
  return (
    <span className={styles.chips}>
      {words.map((word) => (
        <Chip key={word} tone="plain">
          {word}
        </Chip>
      ))}
    </span>
  );
}
