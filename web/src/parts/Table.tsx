import type { ReactNode } from "react";

import { Button } from "./Button";
import styles from "./Table.module.css";

export interface Column<T> {
  title: string;
  cell: (item: T) => ReactNode;
  /** The title is only read out. */
  isUntitled?: boolean;
}

export interface TableProps<T> {
  label: string;
  items: readonly T[];
  keyOf: (item: T, index: number) => string | number;
  columns: readonly Column<T>[];
  /** What can be done with an item: buttons at the end of its row. */
  actions?: (item: T) => Record<string, (() => void) | undefined>;
  /** What is said where there are no items. */
  empty?: ReactNode;
}

/** A table of what fits on a screen; `Rows` is for long lists. */
export function Table<T>({ label, items, keyOf, columns, actions, empty }: TableProps<T>) {
  if (items.length === 0) return <p className={styles.empty}>{empty}</p>;
  return (
    <div className={styles.box} role="group" aria-label={label} tabIndex={0}>
      <table className={styles.table}>
        <thead>
          <tr>
            {columns.map(({ title, isUntitled }) => (
              <th key={title} scope="col">
                <span className={isUntitled ? "unseen" : undefined}>{title}</span>
              </th>
            ))}
            {actions && (
              <th scope="col">
                <span className="unseen">Actions</span>
              </th>
            )}
          </tr>
        </thead>
        <tbody>
          {items.map((item, index) => (
            <tr key={keyOf(item, index)}>
              {columns.map(({ title, cell }) => (
                <td key={title}>{cell(item)}</td>
              ))}
              {actions && (
                <td>
                  {Object.entries(actions(item)).map(([name, act]) => (
                    <Button key={name} variant="bare" aria-label={`${name} ${keyOf(item, index)}`} onClick={act}>
                      {name}
                    </Button>
                  ))}
                </td>
              )}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
