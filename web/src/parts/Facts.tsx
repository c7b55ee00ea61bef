import type { ReactNode } from "react";

import styles from "./Facts.module.css";

/** Names and what they stand for, below each other; what is null or false is left out. */
export function Facts({ values }: { values: Readonly<Record<string, ReactNode>> }) {
  return (
    <dl className={styles.facts}>
      {Object.entries(values).map(
        ([name, value]) =>
          value !== null &&
          value !== false && (
            <div key={name}>
              <dt>{name}</dt>
              <dd>{value}</dd>
            </div>
          ),
      )}
    </dl>
  );
}
