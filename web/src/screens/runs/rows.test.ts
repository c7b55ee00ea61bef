import { expect, test } from "vitest";

import type { RowAnswer } from "../../protocol/api";
import { withNewest } from "./rows";

const rows = (...runs: string[]) => runs.map((run) => ({ run }) as RowAnswer);
const names = (found: RowAnswer[]) => found.map(({ run }) => run).join("");

test("new runs come first, and the pages that were read earlier follow", () => {
  expect(names(withNewest(rows("d", "c", "b", "a"), { items: rows("e", "d", "c"), next: "c" }))).toBe("edcba");
  expect(names(withNewest(rows("b", "a"), undefined))).toBe("ba");
});

test("a run that does not fit the filter any more is gone", () => {
  expect(names(withNewest(rows("d", "c", "b", "a"), { items: rows("d", "b"), next: "b" }))).toBe("dba");
  expect(names(withNewest(rows("b", "a"), { items: rows("b"), next: null }))).toBe("b");
});
