import { expect, test } from "vitest";

import type { WireEvent } from "../protocol/frames";
import { reduceAll } from "./reduce";
import { itemsAt, sentText } from "./select";
import { emptyView } from "./view";

function event(seq: number, kind: string, data: object): WireEvent {
  return { v: 1, seq, ts: seq, run: "r", turn: 1, kind, actor: "agent:Clerk", cause: 0, data } as WireEvent;
}

const RAW = '{"agent_message":"Booked.","people":3}';
const REPLIED = event(2, "ModelReplied", { call: 1, text: RAW, shown: "Booked.", held: true, answerer: "model" });

function texts(...events: WireEvent[]): string[] {
  const view = reduceAll(emptyView("r"), [event(1, "TurnStarted", { agent: "Clerk" }), ...events]);
  return itemsAt(view, 9).flatMap((item) => (item.kind === "agent" ? [sentText(view, item, 9)] : []));
}

test("a reply is shown when its automatic tool has accepted it", () => {
  const held = event(3, "MessageSent", { agent: "Clerk", text: RAW, held: true });
  expect(texts(REPLIED)).toEqual([""]);
  expect(texts(REPLIED, held)).toEqual([""]);
  expect(texts(REPLIED, held, event(4, "MessageSent", { agent: "Clerk", text: RAW, held: false }))).toEqual(["Booked."]);
});

test("a refused reply is not shown, the accepted one is", () => {
  const again = event(4, "ModelReplied", { call: 2, text: "{}", shown: "Sorry.", held: true, answerer: "model" });
  const sent = event(5, "MessageSent", { agent: "Clerk", text: "{}", held: false });
  expect(texts(REPLIED, event(3, "OutputRefused", { call: 1, error: "no" }), again, sent)).toEqual(["", "Sorry."]);
});
