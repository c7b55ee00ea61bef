import { expect, test } from "vitest";

import { payloadSchemaOf, sampleOf } from "./sample";

test("a sample has every field of its schema", () => {
  const schema = {
    type: "object",
    properties: {
      title: { type: "string", title: "What it is about" },
      order_number: { type: "string" },
      urgency: { enum: ["low", "high"] },
      lines: { type: "array", items: { type: "object", properties: { price: { type: "number" } } } },
      note: { type: ["string", "null"], default: null },
      paid: { type: "boolean" },
    },
  };
  expect(sampleOf(schema)).toEqual({
    title: "What it is about",
    order_number: "order number",
    urgency: "low",
    lines: [{ price: 1 }],
    note: null,
    paid: true,
  });
});

test("the schema of a component is that of the tool that shows it", () => {
  const payload_schema = { type: "object", properties: {} };
  const tools = [{ function: "look_up" }, { ui: { component: "Approval" }, payload_schema }];
  expect(payloadSchemaOf(tools, "Approval")).toBe(payload_schema);
  expect(payloadSchemaOf(tools, "Other")).toEqual({ type: "object" });
});
