// How fast the page is: its first paint, and a large graph that does not hold it up.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { longestTask, startWorld } from "./harness.mjs";

const NODES = 300;
// Each with the artifacts that wake it.
const AGENTS = NODES / 2;
const LONGEST_TASK_MS = 200;
const FIRST_PAINT_MS = 1000;

let world;
before(async () => { world = await startWorld({ files: manyAgents() }); });
after(() => world.close());

test("the first paint takes less than a second", async () => {
  const paints = [];
  // The best of three: other programs may have been busy.
  for (let opened = 0; opened < 3; opened += 1) {
    const page = await world.open("/");
    await page.getByRole("navigation", { name: "Screens" }).waitFor();
    paints.push(await page.evaluate(firstPaint));
    await page.close();
  }
  assert.ok(Math.min(...paints) < FIRST_PAINT_MS, `first paints after ${paints} ms`);
});

test("a graph of 300 nodes is laid out beside the page", async () => {
  const page = await world.open("/board");
  const worker = page.waitForEvent("worker");
  const longest = await longestTask(page, async () => {
    await page.getByRole("tab", { name: "Graph" }).click();
    await worker;
    const graph = page.getByRole("group", { name: /^Graph of the workflow/ });
    await graph.getByRole("button", { name: /^Agent0\b/ }).waitFor();
    const last = `Agent${AGENTS - 1}`;
    await graph.getByRole("combobox").selectOption(last);
    await graph.getByRole("button", { name: new RegExp(`^${last}\\b`) }).waitFor();
    await graph.focus();
    for (let step = 0; step < 20; step += 1) await page.keyboard.press("ArrowRight");
  });
  assert.ok(longest < LONGEST_TASK_MS, `a task took ${longest} ms`);
});

function firstPaint() {
  return new Promise((resolve) => {
    const observer = new PerformanceObserver((list) => resolve(list.getEntries()[0].startTime));
    observer.observe({ type: "paint", buffered: true });
  });
}

/** The files of a board on which each artifact wakes the next two agents. */
function manyAgents() {
  const names = Array.from({ length: AGENTS }, (_, index) => `Agent${index}`);
  const types = names.map((name) => `For${name}`);
  const following = (index) => [2 * index + 1, 2 * index + 2].filter((each) => each < AGENTS);
  const parts = {
    "orchestrator.json": { workflow_name: "Crowd" },
    "agents.json": {
      agents: names.map((agent_name) => ({
        agent_name,
        prompt_sections: [{ id: "role", content: "You pass on what you get." }],
      })),
    },
    "board.json": {
      artifacts: types.map((name) => ({ name, schema: { type: "object" } })),
      agents: names.map((agent, index) => ({
        agent,
        consumes: [{ types: [types[index]] }],
        publishes: following(index).map((each) => ({ type: types[each] })),
      })),
    },
  };
  return Object.fromEntries(
    Object.entries(parts).map(([name, part]) => [`workflows/Crowd/${name}`, JSON.stringify(part)]),
  );
}
