import { useVirtualizer } from "@tanstack/react-virtual";
import { useEffect, useRef } from "react";
import type { ReactNode } from "react";

import styles from "./Rows.module.css";

export interface RowsProps<T> {
  items: readonly T[];
  keyOf: (item: T, index: number) => string | number;
  render: (item: T, index: number) => ReactNode;
  /** The height of a row before it is measured. */
  estimate?: number;
  label: string;
  /** The place of a row that is scrolled into view when it changes. */
  current?: number;
}

/** A list of any length that scrolls by itself: only what is seen is in the document. */
export function Rows<T>({ items, keyOf, render, estimate = 40, label, current = -1 }: RowsProps<T>) {
  const box = useRef<HTMLDivElement>(null);
  const virtual = useVirtualizer({
    count: items.length,
    getScrollElement: () => box.current,
    estimateSize: () => estimate,
    getItemKey: (index) => keyOf(items[index] as T, index),
    overscan: 8,
  });
  useEffect(() => {
    if (current >= 0) virtual.scrollToIndex(current);
  }, [virtual, current]);
  const seen = virtual.getVirtualItems();
  return (
    <div ref={box} className={styles.rows} tabIndex={0} role="region" aria-label={label}>
      <div role="list" className={styles.all} style={{ height: virtual.getTotalSize() }}>
        <div className={styles.seen} style={{ translate: `0 ${seen[0]?.start ?? 0}px` }}>
          {seen.map((row) => (
            <div
              key={row.key}
              ref={virtual.measureElement}
              data-index={row.index}
              role="listitem"
              aria-setsize={items.length}
              aria-posinset={row.index + 1}
            >
              {render(items[row.index] as T, row.index)}
            </div>
          ))}
        </div>
      </div>
    </div>
  );
}
