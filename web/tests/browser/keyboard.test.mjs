// Without a mouse: a person starts a run, answers a question in a component, and forks the run.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { startWorld } from "./harness.mjs";

const MOST_TABS = 60;
const QUESTION = { question: "Which one?", options: ["First", "Second"] };
const DECISION = { domain: "unknown", urgency: "low", summary: "", agent_message: "Thank you." };

let world;
before(async () => {
  world = await startWorld({ model: "scripted" });
  world.model.decide = ({ messages }) =>
    messages.some(({ role }) => role === "tool")
      ? JSON.stringify(DECISION)
      : { calls: [{ tool: "request_clarification", arguments: QUESTION }] };
});
after(() => world.close());

test("a run is started, answered and forked with the keyboard", async () => {
  const page = await world.open("/settings");
  await page.getByRole("heading", { name: "Settings", level: 1 }).waitFor();
  await page.keyboard.press("Control+k");
  await page.getByRole("combobox", { name: "Search" }).waitFor();
  await page.keyboard.type("home");
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "Home", level: 1 }).waitFor();

  await tabTo(page, page.getByRole("button", { name: "New run" }));
  await page.keyboard.press("Enter");
  const dialog = page.getByRole("dialog", { name: "New run" });
  await tabTo(page, dialog.getByLabel("Workflow"));
  await page.keyboard.type("Customer");
  await tabTo(page, dialog.getByRole("textbox").first());
  await page.keyboard.type("I was charged twice.");
  await tabTo(page, dialog.getByRole("button", { name: "Start" }));
  await page.keyboard.press("Enter");

  const frame = page.locator("iframe").contentFrame();
  await tabTo(page, frame.getByLabel("First"));
  await page.keyboard.press("Space");
  await tabTo(page, frame.getByRole("button", { name: "Send" }));
  await page.keyboard.press("Enter");
  await page.getByRole("log").getByText("Thank you.", { exact: true }).waitFor();

  const parent = page.url();
  await page.keyboard.press("Escape");
  await page.locator("body").press("f");
  const fork = page.getByRole("dialog", { name: /^Fork at/ });
  await tabTo(page, fork.getByRole("button", { name: "Fork" }));
  await page.keyboard.press("Enter");
  await page.waitForURL((url) => url.pathname.startsWith("/runs/") && !parent.includes(url.pathname));
  await page.getByRole("link", { name: /fork of/i }).waitFor();
});

/** Press Tab until something has the focus. */
async function tabTo(page, target) {
  await target.waitFor();
  for (let pressed = 0; pressed < MOST_TABS; pressed += 1) {
    if (await target.evaluate((element) => element.ownerDocument.activeElement === element)) return;
    await page.keyboard.press("Tab");
  }
  assert.fail(`Tab does not reach ${target}`);
}
