// How a page is connected to a run: over lost connections, without sockets, with forms for answers.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { findAxeViolations, startWorld } from "./harness.mjs";

const answer = {
  type: "object",
  properties: {
    decision: { enum: ["refund", "call_back"], title: "What shall be done?" },
    amount: { type: "number", minimum: 1, description: "At most what was paid." },
    comment: { type: "string", format: "multiline" },
    items: { type: "array", items: { type: "string" }, default: ["plan"] },
  },
  required: ["decision", "amount"],
};

const desk = {
  "orchestrator.json": {
    workflow_name: "Desk",
    description: "When a customer writes, a clerk answers.",
    initial_agent: "Clerk",
  },
  "agents.json": {
    agents: [
      {
        agent_name: "Clerk",
        human_interaction: "context",
        prompt_sections: [{ id: "role", heading: "[ROLE]", content: "You answer customers." }],
      },
    ],
  },
  "handoffs.json": { handoff_rules: [{ source_agent: "Clerk", target_agent: "user" }] },
  "tools.json": {
    tools: [
      {
        tool_type: "UI_Tool",
        agent: "Clerk",
        file: "decide.py",
        function: "decide",
        description: "Asks what shall be done.",
        ui: { component: "Decision", mode: "inline" },
        response_schema: answer,
      },
    ],
  },
};

const DECIDE = `
from weft import use_ui_tool


async def decide(question: str) -> dict[str, object]:
    """Ask what shall be done."""
    return await use_ui_tool(tool_id="decide", payload={"question": question})
`;

const LOST = [/ERR_CONNECTION_REFUSED|ERR_INCOMPLETE_CHUNKED|ERR_CONNECTION_RESET|WebSocket connection/];

let world;

before(async () => {
  const files = Object.fromEntries(
    Object.entries(desk).map(([name, part]) => [`workflows/Desk/${name}`, JSON.stringify(part)]),
  );
  world = await startWorld({
    model: "scripted",
    files: { ...files, "workflows/Desk/tools/decide.py": DECIDE },
  });
});
after(() => world.close());

async function openRun(options) {
  const { run } = await world.post("/api/runs", { workflow: "Desk", message: "Hello", force: true });
  await world.settled(run);
  return { run, page: await world.open(`/runs/${run}`, options) };
}

async function write(page, text) {
  await page.getByRole("textbox", { name: "Your message" }).fill(text);
  await page.keyboard.press("Enter");
}

const said = async (run) => {
  const { items } = await world.get(`/api/runs/${run}/events?limit=1000`);
  return items.filter(({ kind }) => kind === "RequestAnswered").map(({ data }) => data.value);
};

test("a message that is written while the server is away is sent once when it is back", async () => {
  world.model.say("How can I help?");
  const { run, page } = await openRun({ expects: LOST });
  const chat = page.getByRole("log");
  await page.getByText("live", { exact: true }).waitFor();
  await world.stopServer();
  await page.getByText("offline", { exact: false }).waitFor();
  await write(page, "Are you there?");
  await chat.getByText("not sent yet").waitFor();
  world.model.say({ text: "One moment, ".repeat(30), pace: 500 });
  await world.startServer();
  await chat.getByText("One moment", { exact: false }).waitFor();
  assert.deepEqual(await said(run), ["Hello", "Are you there?"]);

  // The model is in the middle of its reply.
  await world.stopServer("SIGKILL");
  world.model.say("Yes, I am here again.");
  await world.startServer();
  await chat.getByText("Yes, I am here again.").waitFor();
  await world.settled(run);
  assert.equal(await chat.getByText("Are you there?", { exact: true }).count(), 1);
  assert.equal(await chat.getByText("One moment", { exact: false }).count(), 0);
  await page.close();
});

test("a page without sockets follows the run over a stream", async () => {
  world.model.say("How can I help?");
  const { run } = await world.post("/api/runs", { workflow: "Desk", message: "Hello", force: true });
  const page = await world.open("/runs");
  await page.addInitScript(() => {
    window.WebSocket = class {
      static CONNECTING = 0;
      constructor() { setTimeout(() => this.onclose?.(), 0); }
      close() {}
    };
  });
  const stream = page.waitForRequest(/\/stream\?after=0$/);
  await page.goto(`/runs/${run}`);
  await stream;
  await page.getByText("How can I help?").waitFor();
  world.model.say({ text: "It is **on** its way.", pace: 20 });
  await write(page, "Where is my order?");
  await page.getByText("on", { exact: true }).waitFor();
  assert.equal(await page.getByText("on", { exact: true }).evaluate((each) => each.localName), "strong");
  await page.close();
});

test("a question without a component is answered in a form made from its schema", async () => {
  world.model.say({ calls: [{ tool: "decide", arguments: { question: "The customer paid twice." } }] });
  const { run, page } = await openRun();
  const card = page.getByRole("article", { name: "The customer paid twice." });
  await card.getByRole("button", { name: "Send" }).click();
  assert.equal(await card.getByText("Please fill this in.").count(), 2);
  await card.getByRole("radio", { name: "Refund" }).check();
  const amount = card.getByRole("textbox", { name: "Amount" });
  await amount.fill("0");
  await card.getByText("At least 1.").waitFor();
  assert.deepEqual(await findAxeViolations(page), []);
  await amount.fill("12.5");
  await card.getByRole("textbox", { name: "Comment" }).fill("First\nSecond");
  await card.getByRole("button", { name: "Add to Items" }).click();
  await card.getByRole("textbox", { name: "Items 2" }).fill("setup fee");
  world.model.say("I have refunded it.");
  await card.getByRole("button", { name: "Send" }).click();
  await page.getByRole("log").getByText("I have refunded it.").waitFor();
  const expected = { decision: "refund", amount: 12.5, comment: "First\nSecond", items: ["plan", "setup fee"] };
  assert.deepEqual((await said(run)).at(-1), expected);
  await page.close();
});
