import { afterEach, beforeEach, expect, test, vi } from "vitest";

import { currentRoute, go, setQuery } from "./url";

beforeEach(() => {
  vi.useFakeTimers();
  go("/runs/a%20b?panel=graph");
});

afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

test("an address is read decoded, also one that is no escape", () => {
  expect(currentRoute().path).toEqual(["runs", "a b"]);
  expect(currentRoute().query.get("panel")).toBe("graph");
  go("/runs/100%");
  expect(currentRoute().path).toEqual(["runs", "100%"]);
});

test("many changes of the query are one write of the address", () => {
  const write = vi.spyOn(history, "replaceState");
  for (let at = 1; at <= 12; at += 1) setQuery({ at: String(at) });
  expect(currentRoute().query.get("at")).toBe("12");
  expect(write).not.toHaveBeenCalled();
  vi.advanceTimersByTime(300);
  expect(write).toHaveBeenCalledTimes(1);
  expect(location.search).toBe("?panel=graph&at=12");
  setQuery({ at: null });
  vi.advanceTimersByTime(300);
  expect(location.search).toBe("?panel=graph");
});

test("a change of the query is written before another address is opened", () => {
  setQuery({ at: "5" });
  go("/inbox");
  vi.advanceTimersByTime(300);
  expect(location.pathname + location.search).toBe("/inbox");
  expect(currentRoute().query.get("at")).toBeNull();
});
