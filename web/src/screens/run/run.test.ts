// @vitest-environment node
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";

import { graphOf } from "../../graph/model";
import type { PackageAnswer } from "../../protocol/api";
import type { WireEvent } from "../../protocol/frames";
import { reduceAll } from "../../run/reduce";
import { emptyView } from "../../run/view";
import type { RunView } from "../../run/view";
import { barsAt } from "./bars";
import { diffLines } from "./diff";
import { liveAt } from "./live";

function read(path: string): string {
  return readFileSync(join(import.meta.dirname, "../../../..", path), "utf8");
}

function viewOf(journal: string): RunView {
  const lines = read(`tests/wire/${journal}.jsonl`).trim().split("\n");
  return reduceAll(emptyView("run"), lines.map((line) => JSON.parse(line) as WireEvent));
}

function packOf(workflow: string, ...parts: string[]): PackageAnswer {
  const files = parts.map((part) => [part, JSON.parse(read(`workflows/${workflow}/${part}.json`))]);
  return { digest: "", spec: { orchestrator: {}, ...Object.fromEntries(files) }, code: {}, tools: {} };
}

describe("the graph of a flow that failed", () => {
  const view = viewOf("flow_undone");
  const pack = packOf("OrderProcessing", "flow");
  const edges = new Set(graphOf(pack.spec).edges.map(({ id }) => id));
  const takenAt = (seq: number) => [...liveAt(view, seq, pack).taken].filter((id) => edges.has(id));

  test("has the ways that were taken", () => {
    expect(takenAt(view.seq)).toEqual([
      "/start>LookAtOrder", "LookAtOrder>ByPayment", "ByPayment>ChargeCard", "ChargeCard>Prepare",
      "Prepare>ReserveItems", "Prepare>WriteMessage", "WriteMessage>CheckMessage", "CheckMessage>Polish",
      "Polish>WriteMessage", "Prepare>UseStandardMessage", "ReserveItems>Pack", "UseStandardMessage>Pack",
      "Pack>IsExpensive", "IsExpensive>ReleaseOrder", "/failure>TellSupport", "TellSupport>/failed",
    ]);
    expect(takenAt(13)).toEqual(["/start>LookAtOrder", "LookAtOrder>ByPayment", "ByPayment>ChargeCard"]);
  });

  test("marks what failed, was undone, waits and works", () => {
    const end = liveAt(view, view.seq, pack);
    expect(end.marks?.get("ReleaseOrder")).toBe("failed");
    expect(end.marks?.get("ChargeCard")).toBe("undone");
    expect(end.visits.get("WriteMessage")).toBe(2);
    expect(liveAt(view, 53, pack).marks?.get("ReleaseOrder")).toBe("waiting");
    expect(liveAt(view, 16, pack).active).toEqual(["ReserveItems"]);
  });
});

test("the graph of a conversation has the rule that decided", () => {
  const view = viewOf("router");
  const handoff = view.byKind.get("HandedOff")?.at(0);
  expect(handoff?.kind).toBe("HandedOff");
  const live = liveAt(view, view.seq, packOf("CustomerSupportRouter"));
  const { source, target } = (handoff as Extract<WireEvent, { kind: "HandedOff" }>).data;
  expect(live.taken.has(`${source}>${target}`)).toBe(true);
});

describe("bars", () => {
  test("stand in their order from 0 to 1", () => {
    for (const journal of ["flow_undone", "router", "questions", "board"]) {
      const view = viewOf(journal);
      const { bars, scale } = barsAt(view, view.seq);
      expect(bars[0]?.isFirst).toBe(true);
      for (const { span, end } of bars) {
        expect(scale(span.start)).toBeGreaterThanOrEqual(0);
        expect(scale(end)).toBeLessThanOrEqual(1);
        expect(scale(end)).toBeGreaterThanOrEqual(scale(span.start));
      }
    }
  });

  test("are short where a person was awaited and nothing was done", () => {
    const view = viewOf("flow_undone");
    const { bars, scale } = barsAt(view, view.seq);
    const waits = bars.filter(({ span }) => span.kind === "waiting");
    expect(waits.map(({ words }) => words)).toContain("waits: approval:ReleaseOrder");
    for (const { span, end } of waits) expect(scale(end) - scale(span.start)).toBeLessThan(0.1);
  });
});

test("two texts are compared line by line", () => {
  expect(diffLines(["a", "b", "c"], ["a", "x", "c", "d"])).toEqual(["  a", "- b", "+ x", "  c", "+ d"]);
  expect(diffLines([], ["a"])).toEqual(["+ a"]);
  expect(diffLines(["a"], [])).toEqual(["- a"]);
});
