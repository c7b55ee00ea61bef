import { expect, test } from "vitest";

import type { Delta, WireEvent } from "../protocol/frames";
import { reduceDelta } from "./drafts";
import { reduceAll } from "./reduce";
import { emptyView, type RunView } from "./view";

function event(seq: number, kind: string, data: object, cause = 0): WireEvent {
  return { v: 1, seq, ts: seq, run: "r", turn: 1, kind, actor: "agent:Clerk", cause, data } as WireEvent;
}

const BEGUN = reduceAll(emptyView("r"), [
  event(1, "TurnStarted", { agent: "Clerk" }),
  event(2, "ContextAssembled", { agent: "Clerk", call: 1, manifest: {}, digest: "" }),
]);

function piece(offset: number, text: string, call = 2): Delta {
  return { v: 1, run: "r", turn: 1, kind: "delta", data: { call, offset, text } };
}

function retry(text: string): Delta {
  return { v: 1, run: "r", turn: 1, kind: "retry", data: { call: 2, text } };
}

function draft(deltas: Delta[], view: RunView = BEGUN) {
  return deltas.reduce(reduceDelta, view).drafts.get(2);
}

test("pieces become one text, in any order", () => {
  const pieces = [piece(0, "Hel"), piece(3, "lo "), piece(6, "there")];
  for (const [a, b, c] of [[0, 1, 2], [0, 2, 1], [2, 1, 0], [1, 0, 2]] as const) {
    expect(draft([pieces[a]!, pieces[b]!, pieces[c]!])!.text).toBe("Hello there");
  }
  expect(draft(pieces)!.agent).toBe("Clerk");
});

test("a piece with a hole before it waits", () => {
  const ahead = draft([piece(0, "Hel"), piece(6, "there")])!;
  expect(ahead.text).toBe("Hel");
  expect(draft([piece(0, "Hel"), piece(6, "there"), piece(3, "lo ")])!.text).toBe("Hello there");
});

test("a text that begins again replaces what there was", () => {
  expect(draft([piece(0, "Hello there"), piece(0, "Hi")])!.text).toBe("Hi");
  const again = draft([piece(0, "Hel"), retry("timeout")])!;
  expect([again.text, again.retry]).toEqual(["", "timeout"]);
  expect(draft([piece(0, "Hel"), retry("timeout"), piece(0, "Hi")])!.retry).toBe("");
});

test("the reply takes the place of its pieces, also of those that come after it", () => {
  const reply = event(3, "ModelReplied", { call: 1, text: "Hello", answerer: "model" }, 2);
  const view = reduceAll(reduceDelta(BEGUN, piece(0, "Hel")), [reply]);
  expect(view.drafts.size).toBe(0);
  expect(reduceDelta(view, piece(3, "lo"))).toBe(view);
});
