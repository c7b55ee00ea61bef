import { act } from "react";
import { createRoot } from "react-dom/client";
import { expect, test, vi } from "vitest";

import { ApiProblem, offline } from "../transport/http";
import { Problem } from "./States";

vi.stubGlobal("IS_REACT_ACT_ENVIRONMENT", true);

function show(error: unknown): HTMLElement {
  const box = document.createElement("div");
  act(() => createRoot(box).render(<Problem error={error} />));
  return box;
}

async function copied(box: HTMLElement): Promise<unknown> {
  const write = vi.fn(() => Promise.resolve());
  vi.stubGlobal("navigator", { clipboard: { writeText: write } });
  await act(async () => box.querySelector("button")!.click());
  return write.mock.calls.flat()[0];
}

test("a problem has the code of the server", async () => {
  const box = show(new ApiProblem(409, { code: "HTTP409", message: "the run has ended", hint: ["start again"] }));
  expect(box.querySelector("code")?.textContent).toBe("HTTP409");
  expect(await copied(box)).toBe("HTTP409: the run has ended\nstart again");
});

test("a server that cannot be reached has given no code", async () => {
  const box = show(offline());
  expect(box.querySelector("code")).toBeNull();
  expect(box.textContent).toContain("The server cannot be reached");
  expect(await copied(box)).toMatch(/^the server cannot be reached\n/);
});
