// @vitest-environment node
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";

import type { WireEvent } from "../protocol/frames";
import { reduceAll, reduceRun } from "./reduce";
import {
  activeAt, callAt, causesOf, clocksAt, closedAt, eventsAt, eventsOf, headAt, historyAt, itemsAt,
  openAt, requestAt, resultAt, sentText, spanEndAt, spansAt, spentAt, statusAt, threadOf, turnEndAt,
  turnStateAt, turnUnder, turnsAt, variablesAt,
} from "./select";
import { emptyView, type RunView } from "./view";

type Facts = Record<string, unknown>;

// Python knows the same of these runs: tests/wire/journals.py.
const EXPECTED = JSON.parse(shared("expected.json")) as Record<string, Facts[]>;

function shared(name: string): string {
  return readFileSync(join(import.meta.dirname, "../../../tests/wire", name), "utf8");
}

function journal(name: string): WireEvent[] {
  const lines = shared(`${name}.jsonl`).trim().split("\n");
  return lines.map((line) => JSON.parse(line) as WireEvent);
}

function factsAt(view: RunView, seq: number): Facts {
  const { status, outcome } = statusAt(view, seq);
  const { calls, input, output, cost, unpriced, unmetered } = spentAt(view, seq);
  const facts: Facts = {
    status: status === "working" ? "running" : status,
    outcome,
    requests: openAt(view, seq).map(({ id }) => id).sort(),
    spent: [calls, input, output, cost, unpriced, unmetered],
  };
  for (const [name, change] of variablesAt(view, seq)) facts[`variable ${name}`] = change.value;
  for (const { number, agent } of turnsAt(view, seq)) {
    const end = turnEndAt(view, number, seq);
    facts[`turn ${number}`] = [agent, end === undefined ? "working" : end.error === null ? "done" : "failed"];
  }
  const isConversation = eventsOf(view, "TurnStarted", seq).every(({ data }) => !data.step);
  for (const item of isConversation ? itemsAt(view, seq) : []) {
    if (item.kind === "user" && item.text) facts[`said ${item.seq}`] = ["", item.text];
    if (item.kind === "agent") {
      facts[`said ${item.seq}`] = [item.agent, item.raw ?? sentText(view, item, seq)];
    }
  }
  return facts;
}

/** The facts after each event. */
function expectedOf(name: string): Facts[] {
  let known: Facts = {};
  return EXPECTED[name]!.map((change) => (known = { ...known, ...change }));
}

function folded(events: readonly WireEvent[]): RunView {
  return reduceAll(emptyView("run"), events);
}

describe.each(Object.keys(EXPECTED))("%s", (name) => {
  const events = journal(name);

  test("the page knows after each event what Python knows", () => {
    const expected = expectedOf(name);
    const view = folded(events);
    // Variables have their defaults from the beginning, which are no events.
    const defaults = Object.entries(expected[0]!).filter(([key]) => key.startsWith("variable "));
    for (const [index, facts] of expected.entries()) {
      const found = { ...Object.fromEntries(defaults), ...factsAt(view, index + 1) };
      expect(found, `after event ${index + 1}, ${events[index]!.kind}`).toEqual(facts);
    }
  });

  test("what all events show at a cursor is what the events until there show", () => {
    const view = folded(events);
    for (let seq = 0; seq <= events.length; seq += 1) {
      expect(shownAt(view, seq), `at ${seq}`).toEqual(shownAt(folded(events.slice(0, seq)), seq));
    }
  });

  test("an event that comes twice, or late, changes nothing", () => {
    let view = emptyView("run");
    for (const event of events) {
      const next = reduceRun(view, event);
      expect(reduceRun(next, event)).toBe(next);
      view = reduceRun(next, events[0]!);
    }
    expect(shownAt(view, view.seq)).toEqual(shownAt(folded(events), view.seq));
  });

  test("an event of a kind that is not known is kept, and shows nothing", () => {
    const strange = { kind: "Invented", data: { id: "x", text: "x" } };
    const between = events.map((event) => ({ ...event, ...strange, seq: event.seq + 0.5 }) as unknown as WireEvent);
    const view = folded(events.flatMap((event, index) => [event, between[index]!]));
    expect(eventsAt(view, view.seq)).toHaveLength(2 * events.length);
    expect(factsAt(view, view.seq)).toEqual(factsAt(folded(events), events.length));
  });

  test("a view that was shown does not change when events follow", () => {
    const half = Math.floor(events.length / 2);
    const view = folded(events.slice(0, half));
    const before = shownAt(view, half);
    reduceAll(view, events.slice(half));
    expect(shownAt(view, half)).toEqual(before);
    expect(itemsAt(view, events.length)).toEqual(itemsAt(view, half));
  });
});

describe.each(["router", "questions", "panel"])("%s, as its end user", (name) => {
  const events = journal(`${name}.user`);

  test("the user sees the same state when the run waits or has ended, and no variables", () => {
    const view = folded(events);
    const whole = folded(journal(name));
    const rests = expectedOf(name).flatMap(({ status }, index) => (status === "running" ? [] : [index + 1]));
    expect(rests.length).toBeGreaterThan(1);
    for (const seq of rests) {
      const { status, requests } = factsAt(whole, seq);
      expect(factsAt(view, seq), `at ${seq}`).toMatchObject({ status, requests, spent: [0, 0, 0, 0, 0, 0] });
    }
    expect(variablesAt(view, view.seq).size).toBe(0);
  });

  test("the user reads what was said, in the same words", () => {
    const said = (view: RunView) =>
      itemsAt(view, view.seq).flatMap((item) =>
        item.kind === "agent" || item.kind === "user" ? [`${item.seq}: ${item.text}`] : [],
      );
    const all = said(folded(journal(name)));
    const seen = said(folded(events));
    expect(seen.length).toBeGreaterThan(0);
    expect(all).toEqual(expect.arrayContaining(seen));
  });
});

/** Everything that a screen can ask for. */
function shownAt(view: RunView, seq: number): unknown {
  const turns = turnsAt(view, seq);
  const calls = eventsOf(view, "ToolCalled", seq).map(({ data }) => data.id);
  return {
    facts: factsAt(view, seq),
    head: headAt(view, seq),
    items: itemsAt(view, seq),
    events: eventsAt(view, seq),
    status: statusAt(view, seq),
    clocks: clocksAt(view, seq),
    turns,
    turnStates: turns.map(({ number }) => turnStateAt(view, number, seq)),
    ends: turns.map(({ number }) => turnEndAt(view, number, seq)),
    under: turnUnder(view, seq),
    active: activeAt(view, seq),
    threads: turns.map(({ agent }) => threadOf(view, agent)),
    calls: calls.map((id) => [callAt(view, id, seq), resultAt(view, id, seq)]),
    requests: eventsOf(view, "RequestOpened", seq).map(({ data }) => [
      requestAt(view, data.id, seq), closedAt(view, data.id, seq),
    ]),
    spans: spansAt(view, seq).map((span) => [span, spanEndAt(view, span.id, seq)]),
    variables: [...variablesAt(view, seq).keys()].map((name) => [name, historyAt(view, name, seq)]),
    causes: causesOf(view, seq),
    sent: itemsAt(view, seq).map((item) => (item.kind === "agent" ? sentText(view, item, seq) : "")),
  };
}
