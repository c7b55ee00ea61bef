import { act } from "react";
import { createRoot, type Root } from "react-dom/client";
import { afterEach, beforeEach, expect, test, vi } from "vitest";

import { useKeys } from "./keys";
import { findChoices } from "./Palette";

vi.stubGlobal("IS_REACT_ACT_ENVIRONMENT", true);

const outer = vi.fn();
const inner = vi.fn();
let root: Root;
let box: HTMLElement;

function Bound({ keys, children }: { keys: Record<string, () => void>; children?: React.ReactNode }) {
  useKeys(keys);
  return children;
}

beforeEach(() => {
  box = document.body.appendChild(document.createElement("div"));
  root = createRoot(box);
  outer.mockReset();
  inner.mockReset();
});

afterEach(() => {
  act(() => root.unmount());
  box.remove();
});

function press(key: string, target: Element = document.body, more: KeyboardEventInit = {}) {
  target.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true, ...more }));
}

test("the component that came last has the key, and gives it back", () => {
  act(() => root.render(<Bound keys={{ j: outer, k: outer }} />));
  press("j");
  expect(outer).toHaveBeenCalledTimes(1);
  act(() => root.render([<Bound key="1" keys={{ k: outer }} />, <Bound key="2" keys={{ j: inner }} />]));
  press("j");
  press("k");
  expect([outer.mock.calls.length, inner.mock.calls.length]).toEqual([2, 1]);
});

test("keys that are typed, or press a control, are not taken", () => {
  act(() =>
    root.render(
      <Bound keys={{ j: outer, " ": inner }}>
        <textarea />
        <input type="range" />
        <button type="button">Press</button>
        <select />
      </Bound>,
    ),
  );
  const [area, range, button, select] = ["textarea", "input", "button", "select"].map(
    (name) => box.querySelector(name)!,
  );
  for (const control of [area!, select!]) press("j", control);
  for (const control of [area!, range!, button!]) press(" ", control);
  for (const modifier of ["ctrlKey", "metaKey", "altKey"]) press("j", document.body, { [modifier]: true });
  expect([outer.mock.calls.length, inner.mock.calls.length]).toEqual([0, 0]);
  press("j", range!);
  press("j", button!);
  press(" ");
  expect([outer.mock.calls.length, inner.mock.calls.length]).toEqual([2, 1]);
});

test("the palette finds every word in any order", () => {
  const choices = [{ label: "Customer support", note: "Router" }, { label: "Runs" }];
  const labels = (text: string) => findChoices(choices, text).map(({ label }) => label);
  expect(labels("")).toEqual(["Customer support", "Runs"]);
  expect(labels(" ROUTER  cust")).toEqual(["Customer support"]);
  expect(labels("runs router")).toEqual([]);
});
