// A run of ten thousand events: it is opened, scrolled and moved through without a long task.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { longestTask, startWorld } from "./harness.mjs";

const EVENTS = 10_000;
const ROUNDS = 1000;
const LONGEST_TASK_MS = 200;

const STEPS = [
  {
    kind: "step", name: "Write",
    work: { kind: "agent", agent: "Writer", prompt: "Write note {count}.", output: "note" },
  },
  { kind: "step", name: "Count", work: { kind: "function", function: "tools.notes:add_one" } },
];
const LOOP = {
  kind: "repeat", name: "Again", until: `count >= ${ROUNDS}`, max_iterations: ROUNDS, steps: STEPS,
};
const VARIABLES = {
  count: { type: "int", source: { type: "derived", default: 0 } },
  note: { type: "str", source: { type: "derived", default: "" } },
};
const PACKAGE = {
  "orchestrator.json": { workflow_name: "Long", description: "Writes many notes." },
  "agents.json": {
    agents: [{ agent_name: "Writer", prompt_sections: [{ id: "role", content: "You write notes." }] }],
  },
  "context_variables.json": { context_variables: { definitions: VARIABLES, agents: {} } },
  "flow.json": { steps: [LOOP] },
};

let world;
let run;
let count;
let page;

before(async () => {
  const files = Object.entries(PACKAGE).map(([name, part]) => [`workflows/Long/${name}`, JSON.stringify(part)]);
  const code = 'def add_one(notes: dict) -> dict:\n    return {"count": notes["count"] + 1}\n';
  world = await startWorld({ files: { ...Object.fromEntries(files), "workflows/Long/tools/notes.py": code } });
  ({ run } = await world.post("/api/runs", { workflow: "Long", model: "sample" }, await world.keyOf()));
  ({ seq: count } = await world.settled(run));
  assert.ok(count >= EVENTS, `${count} events`);
});
after(() => world.close());

async function assertShort(what, act) {
  const longest = await longestTask(page, act);
  assert.ok(longest < LONGEST_TASK_MS, `${what}: a task took ${longest} ms`);
}

test("ten thousand events are read, and the end is shown", async () => {
  page = await world.open("/");
  await assertShort("open", async () => {
    await page.goto(`/runs/${run}`);
    await page.getByText("This run has ended.").waitFor();
    await page.getByText(`event ${count}`).first().waitFor();
  });
  const rows = await page.getByRole("log").locator("[data-index]").count();
  assert.ok(rows < 60, `${rows} rows are in the document`);
});

test("their conversation is scrolled", async () => {
  const log = page.getByRole("log");
  await assertShort("scroll", () => log.evaluate(scrollThrough));
  await log.evaluate((box) => box.scrollTo(0, 0));
  await log.getByText("Write", { exact: true }).first().waitFor();
});

test("the list of them is scrolled and searched", async () => {
  await page.getByRole("tab", { name: "Timeline" }).click();
  await page.getByText("Events", { exact: true }).click();
  const list = page.getByRole("region", { name: "Events" });
  await assertShort("scroll events", () => list.evaluate(scrollThrough));
  await assertShort("find events", async () => {
    await page.getByRole("searchbox").fill("count = 500 by");
    await page.getByText("No event has these words.").waitFor();
    await page.getByRole("combobox", { name: "Kind of event" }).selectOption("RunEnded");
    await page.getByRole("searchbox").fill("");
    await page.getByText(`1 of ${count}`).waitFor();
  });
});

for (const tab of ["Context", "Graph", "Timeline"]) {
  test(`the cursor is moved through them beside the ${tab.toLowerCase()}`, async () => {
    await page.getByRole("tab", { name: tab }).click();
    await page.getByRole("tabpanel", { name: tab }).getByText(/Write|count/).first().waitFor();
    const { x, y, width, height } = await page.getByRole("slider", { name: "Event" }).boundingBox();
    await assertShort(`scrub beside the ${tab}`, async () => {
      await page.mouse.move(x + width - 9, y + height / 2);
      await page.mouse.down();
      for (let step = 1; step <= 60; step += 1) {
        await page.mouse.move(x + width - 9 - (width * step) / 70, y + height / 2);
      }
      await page.mouse.up();
      for (let step = 0; step < 20; step += 1) await page.keyboard.press("ArrowRight");
    });
    await page.getByText(/You are looking at event/).waitFor();
  });
}

/** Scroll a list from its end to its beginning in a hundred frames. */
async function scrollThrough(box) {
  for (let frame = 0; frame < 100; frame += 1) {
    box.scrollTop = (box.scrollHeight * (99 - frame)) / 100;
    await new Promise((resolve) => requestAnimationFrame(resolve));
  }
}
