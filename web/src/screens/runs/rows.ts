import type { RowAnswer, RunsAnswer } from "../../protocol/api";

/** The first page as it is now, and what comes after it of rows that were read earlier. */
export function withNewest(rows: readonly RowAnswer[], newest: RunsAnswer | undefined): RowAnswer[] {
  if (!newest) return [...rows];
  if (newest.next === null) return newest.items;
  const known = new Set(newest.items.map(({ run }) => run));
  const end = rows.findLastIndex(({ run }) => known.has(run));
  return [...newest.items, ...rows.slice(end + 1)];
}
