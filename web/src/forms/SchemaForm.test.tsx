import { act } from "react";
import { createRoot, type Root } from "react-dom/client";
import { afterEach, beforeEach, expect, test, vi } from "vitest";

import { ApiProblem } from "../transport/http";
import type { SchemaFormProps } from ".";
import { SchemaForm } from "./SchemaForm";

vi.stubGlobal("IS_REACT_ACT_ENVIRONMENT", true);

const sent = vi.fn();
const box = document.createElement("div");
let root: Root;

beforeEach(() => {
  document.body.append(box);
  root = createRoot(box);
  sent.mockReset();
});

afterEach(() => act(() => root.unmount()));

function show(schema: Record<string, unknown>, more: Partial<SchemaFormProps> = {}) {
  const props = { schema, submitLabel: "Send", onSubmit: sent, ...more };
  act(() => root.render(<SchemaForm {...props} />));
}

const object = (properties: object, required: string[] = [], more: object = {}) => ({
  type: "object", properties, required, ...more,
});

/** The control with a label, as a reader finds it. */
function field<T extends HTMLElement = HTMLInputElement>(label: string): T {
  const found = [...box.querySelectorAll<HTMLLabelElement>("label")].find(
    (each) => each.textContent!.replace(/ (optional|JSON|optional, JSON)$/, "") === label,
  );
  const control = found?.htmlFor ? document.getElementById(found.htmlFor) : found?.querySelector("input");
  if (!control) throw new Error(`no field ${label} in ${box.textContent}`);
  return control as unknown as T;
}

function type(label: string, text: string) {
  const control = field(label);
  const { set } = Object.getOwnPropertyDescriptor(Object.getPrototypeOf(control), "value")!;
  act(() => {
    set!.call(control, text);
    control.dispatchEvent(new Event(control.localName === "select" ? "change" : "input", { bubbles: true }));
  });
}

const click = (element: Element) => act(() => (element as HTMLElement).click());
const button = (label: string) =>
  [...box.querySelectorAll("button")].find((each) => (each.getAttribute("aria-label") ?? each.textContent) === label)!;
const submit = () => click(button("Send"));
const error = (label: string) => {
  const ids = field(label).getAttribute("aria-describedby")?.split(" ") ?? [];
  return field(label).getAttribute("aria-invalid") ? document.getElementById(ids[0]!)!.textContent : null;
};

test("every kind of value is drawn, filled with its default and sent as its type", () => {
  show(
    object(
      {
        name: { type: "string", title: "Your name" },
        mail: { type: "string", format: "email" },
        pin: { type: "string", format: "password", default: "not shown" },
        day: { type: "string", format: "date" },
        count: { type: "integer", default: 2 },
        share: { type: ["number", "null"] },
        urgent: { type: "boolean", default: true },
        agree: { type: "boolean" },
        size: { enum: ["small", "very_large"] },
        level: { anyOf: [{ enum: [1, 2, 3, 4, 5] }, { type: "null" }] },
        toppings: { type: "array", items: { enum: ["ham", "olives"] } },
        address: object({ street: { type: "string" }, floor: { type: "integer" } }, ["street"]),
        notes: { type: "array", items: { type: "string" }, default: ["first"] },
        extra: { type: "object", additionalProperties: true },
      },
      ["name", "agree", "size", "pin"],
    ),
  );
  expect(field("Pin").type).toBe("password");
  expect(field("Pin").value).toBe("");
  expect(field("Mail").type).toBe("email");
  expect(field("Count").value).toBe("2");
  type("Your name", "Ada");
  type("Pin", "1234");
  type("Day", "2026-03-01");
  type("Share", "0.5");
  click(field("Urgent"));
  click(field("No"));
  click(field("Very large"));
  type("Level", "3");
  click(field("Olives"));
  click(field("Ham"));
  type("Street", "Quay 1");
  click(button("Add to Notes"));
  type("Notes 2", "second");
  type("Extra", '{"a": [1]}');
  submit();
  expect(sent.mock.calls).toEqual([[{
    name: "Ada", pin: "1234", day: "2026-03-01", count: 2, share: 0.5, urgent: false, agree: false,
    size: "very_large", level: 4, toppings: ["ham", "olives"], address: { street: "Quay 1" },
    notes: ["first", "second"], extra: { a: [1] },
  }]]);
});

test("what is left empty is left out", () => {
  show(object({ a: { type: "string" }, b: { type: "number" }, c: object({ d: { type: "string" } }),
    e: { type: "string", default: "x" }, f: { type: "array", items: { type: "string" } } }));
  type("E", "");
  submit();
  expect(sent).toHaveBeenCalledWith({ e: "" });
});

test("references, lists of objects and moments are drawn", () => {
  const item = object({ what: { type: "string" }, due: { type: "string", format: "date-time" } }, ["what"]);
  show(
    { $ref: "#/$defs/Order", $defs: { Item: item, Order: object({ items: { type: "array", items: { $ref: "#/$defs/Item" } } }) } },
    { value: { items: [{ what: "lamp", due: "2026-03-01T12:00:00Z" }] } },
  );
  expect(field("What").value).toBe("lamp");
  click(button("Add to Items"));
  click(button("Remove Items 1"));
  type("What", "rug");
  type("Due", "2026-03-02T12:00");
  submit();
  expect(sent).toHaveBeenCalledWith({ items: [{ what: "rug", due: new Date("2026-03-02T12:00").toISOString() }] });
});

test("errors stand at their fields, and the first one has the focus", () => {
  show(object({ a: { type: "string" }, b: { type: "integer", minimum: 3 },
    c: object({ d: { type: "string", minLength: 4 } }, ["d"]), e: { type: "string", pattern: "^x" } }, ["a", "c"]));
  type("B", "2");
  type("E", "y");
  submit();
  expect(sent).not.toHaveBeenCalled();
  expect(["A", "B", "D", "E"].map(error)).toEqual(
    ["Please fill this in.", "At least 3.", "Please fill this in.", "This does not match ^x"],
  );
  expect(document.activeElement).toBe(field("A"));
  type("A", "1");
  type("B", "three");
  type("D", "abc");
  expect(["A", "B", "D"].map(error)).toEqual([null, "Write a whole number.", "Write at least 4 characters."]);
  type("B", "3");
  type("D", "abcd");
  type("E", "");
  submit();
  expect(sent).toHaveBeenCalledWith({ a: "1", b: 3, c: { d: "abcd" } });
});

test("a rule of the whole object is shown, and its fields are drawn", () => {
  const texts = { a: { type: "string" }, b: { type: "string" } };
  show(object({ ...texts, c: { type: "string" } }, [], {
    anyOf: [{ required: ["a"] }, { required: ["b"] }], maxProperties: 1,
  }));
  submit();
  expect(sent).not.toHaveBeenCalled();
  expect(error("A")).toBe("Please fill this in.");
  type("A", "1");
  type("C", "1");
  expect(box.querySelector('[role="alert"]')!.textContent).toContain("properties");
  type("C", "");
  submit();
  expect(sent).toHaveBeenCalledWith({ a: "1" });
});

test("what cannot be drawn is edited as JSON and checked like the rest", () => {
  const data = { type: "object", oneOf: [object({ a: { type: "number" } }, ["a"]), object({ b: { type: "number" } }, ["b"])] };
  show(object({ data, any: {} }, ["data"]));
  type("Data", "{");
  submit();
  expect(error("Data")).toContain("not valid JSON");
  type("Data", '{"a": "x"}');
  expect(error("Data")).toContain("a");
  type("Data", '{"a": 1}');
  type("Any", "just text");
  submit();
  expect(sent).toHaveBeenCalledWith({ data: { a: 1 }, any: "just text" });
});

test("an answer that is no object has one field", () => {
  show({ type: "integer", title: "How many?", maximum: 9 });
  submit();
  expect(error("How many?")).toBe("Please fill this in.");
  type("How many?", "10");
  expect(error("How many?")).toBe("At most 9.");
  type("How many?", "9");
  submit();
  expect(sent).toHaveBeenCalledWith(9);
});

test("a schema with a part that contains itself has an end", () => {
  const Node = object({ name: { type: "string" }, children: { type: "array", items: { $ref: "#/$defs/Node" } } });
  show({ $ref: "#/$defs/Node", $defs: { Node: { ...Node, properties: { ...Node.properties, next: { $ref: "#/$defs/Node" } } } } });
  expect(box.querySelectorAll("textarea").length).toBeGreaterThan(3);
});

test("what the server refuses is shown at its field until something is typed", () => {
  const schema = object({ answer: { type: "string" }, order: object({ amount: { type: "number" } }) });
  show(schema);
  const problem = { code: "HTTP422", message: "the answer does not fit what ask asks for: order.amount: 5 is too much" };
  show(schema, { error: new ApiProblem(422, problem) });
  expect(error("Amount")).toBe("5 is too much");
  expect(document.activeElement).toBe(field("Amount"));
  expect(box.textContent).toContain("HTTP422");
  type("Amount", "4");
  expect(error("Amount")).toBeNull();
  expect(box.textContent).not.toContain("HTTP422");
  show(schema, { error: new ApiProblem(422, { message: "no", cause: ["values.answer: it is missing"] }) });
  expect(error("Answer")).toBe("it is missing");
});
