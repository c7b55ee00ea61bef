// What people do in a run: write, answer, stop, retry and fork, also while the server is away.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, afterEach, before, test } from "node:test";

import { findAxeViolations, ROOT, startWorld } from "./harness.mjs";

const OFFLINE = /ERR_CONNECTION_(REFUSED|RESET)|ERR_EMPTY_RESPONSE|ERR_INCOMPLETE_CHUNKED_ENCODING|WebSocket connection/;
const ASKS = {
  calls: [{ tool: "request_clarification", arguments: { question: "Which one?", options: ["Both"] } }],
};
const DECISION = JSON.stringify({
  domain: "finance", urgency: "normal", summary: "Both charges.", agent_message: "Thank you.",
});

/** Deletes a run from a journal, as somebody does who cleans up or puts an older copy back. */
const DELETE = `
import sqlite3, sys

with sqlite3.connect(sys.argv[1]) as journal:
    for (table,) in journal.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
        if "run" in [column[1] for column in journal.execute(f"PRAGMA table_info({table})")]:
            journal.execute(f"DELETE FROM {table} WHERE run = ?", (sys.argv[2],))
`;

/** The workflow of the documentation whose component is in docs/tools.md. */
const CONFIRM = `
from weft import use_ui_tool


async def confirm(question: str) -> object:
    """Ask."""
    return await use_ui_tool("confirm", {"question": question})
`;
const DESK = {
  "orchestrator.json": JSON.stringify({ workflow_name: "Desk", initial_agent: "Clerk" }),
  "agents.json": JSON.stringify({
    agents: [
      {
        agent_name: "Clerk",
        human_interaction: "context",
        prompt_sections: [{ id: "role", content: "You answer customers." }],
      },
    ],
  }),
  "handoffs.json": JSON.stringify({ handoff_rules: [{ source_agent: "Clerk", target_agent: "user" }] }),
  "tools.json": JSON.stringify({
    tools: [
      {
        tool_type: "UI_Tool",
        agent: "Clerk",
        file: "desk.py",
        function: "confirm",
        description: "Asks.",
        ui: { component: "Confirm", mode: "inline" },
        response_schema: { type: "object", properties: { choice: { type: "string" } }, required: ["choice"] },
      },
    ],
  }),
  "tools/desk.py": CONFIRM,
  "tools/Confirm.jsx": /```jsx\n([^]*?)```/.exec(readFileSync(join(ROOT, "docs/tools.md"), "utf8"))[1],
};

let world;
const pages = [];
before(async () => {
  const files = Object.entries(DESK).map(([name, content]) => [`workflows/Desk/${name}`, content]);
  world = await startWorld({ model: "scripted", files: Object.fromEntries(files) });
});
after(() => world.close());
// Each page that follows a run over a stream takes one of the few connections of the browser.
afterEach(() => Promise.all(pages.splice(0).map((page) => page.close())));

async function start(body, ...replies) {
  world.model.say(...replies);
  const { run } = await world.post("/api/runs", { force: true, ...body }, await world.keyOf());
  await world.settled(run);
  return run;
}

function greet(...replies) {
  return start({ workflow: "HelloWorld", message: "Hello" }, "Welcome!", ...replies);
}

async function open(run, query = "", expects = []) {
  const page = await world.open(`/runs/${run}${query}`, { expects: [OFFLINE, ...expects] });
  pages.push(page);
  return page;
}

async function kindsOf(run) {
  return (await world.get(`/api/runs/${run}/events?limit=500`)).items.map(({ kind }) => kind);
}

test("a reply is shown while it is written", async () => {
  const run = await greet({ text: "One two three four five six seven.", pace: 150 });
  const page = await open(run);
  await page.getByRole("textbox", { name: "Your message" }).fill("Count, please");
  await page.keyboard.press("Enter");
  const log = page.getByRole("log");
  await log.getByText("Count, please").waitFor();
  await log.getByText("One two").waitFor();
  assert.equal(await log.getByText("seven.").count(), 0);
  await log.getByText("One two three four five six seven.").waitFor();
  await page.getByRole("status").filter({ hasText: "One two three four five six seven." }).waitFor();
});

test("after the server was killed, a turn goes on, and a message written meanwhile is sent once", async () => {
  const run = await greet();
  const page = await open(run);
  await page.getByText("Welcome!").waitFor();
  const busy = await greet({ text: "Never finished.", delay: 20_000 });
  const busyPage = await open(busy);
  await busyPage.getByRole("textbox", { name: "Your message" }).fill("Go on");
  await busyPage.keyboard.press("Enter");
  await busyPage.getByText("is working", { exact: true }).waitFor();

  await world.stopServer("SIGKILL");
  await page.getByText("offline, showing up to event").waitFor();
  await page.getByRole("textbox", { name: "Your message" }).fill("Are you there?");
  await page.keyboard.press("Enter");
  await page.getByText("not sent yet").waitFor();
  world.model.decide = () => "I am back.";
  await world.startServer();

  await page.getByRole("log").getByText("I am back.").waitFor();
  assert.equal(await page.getByText("Are you there?").count(), 1);
  assert.equal(await page.getByText("not sent yet").count(), 0);
  await busyPage.getByRole("log").getByText("I am back.").waitFor();
  assert.equal(await busyPage.getByText("Go on").count(), 1);
  for (const each of [run, busy]) {
    const kinds = await kindsOf(each);
    assert.equal(kinds.filter((kind) => kind === "RequestAnswered").length, 2);
  }
});

test("an open question survives a reload and a killed server, and is answered once", async () => {
  const drawn = {};
  for (const way of ["component", "form"]) {
    const run = await start({ workflow: "CustomerSupportRouter", message: `Charged: ${way}` }, ASKS);
    const page = await world.open("/", { expects: [OFFLINE] });
    pages.push(page);
    if (way === "form") {
      await page.route("**/components/*", (route) =>
        route.fulfill({ json: { name: "ClarificationRequest", source: null } }));
    }
    await page.goto(`/runs/${run}`);
    const card = page.getByRole("article", { name: "Which one?" });
    const box = way === "form" ? card.getByLabel("Your answer") : card.frameLocator("iframe").getByRole("textbox");
    const [opened] = (await world.get(`/api/runs/${run}`)).requests;
    drawn[way] = { run, page, card, box, opened };
    await box.waitFor();
    await page.reload();
    await box.waitFor();
  }

  await world.stopServer("SIGKILL");
  for (const { page, box } of Object.values(drawn)) {
    await page.getByText("offline, showing up to event").waitFor();
    await box.waitFor();
  }
  await world.startServer();

  for (const [way, { run, page, card, box, opened }] of Object.entries(drawn)) {
    await page.bringToFront();
    await page.getByText("live", { exact: true }).waitFor();
    await page.reload();
    await box.fill(`Both of them, ${way}`);
    world.model.say(DECISION, "Which day was it?");
    const inside = way === "form" ? card : card.frameLocator("iframe");
    await inside.getByRole("button", { name: "Send", exact: true }).click();
    await card.getByText("answered by me").waitFor();
    await page.getByRole("log").getByText("Which day was it?").waitFor();
    const events = (await world.get(`/api/runs/${run}/events?limit=500`)).items;
    const found = (kind) => events.filter((event) => event.kind === kind && event.data.id === opened.id);
    assert.equal(found("RequestOpened").length, 1, way);
    assert.equal(found("RequestAnswered").length, 1, way);
    assert.match(JSON.stringify(found("RequestAnswered")[0].data.value), new RegExp(`Both of them, ${way}`));
    await assert.rejects(world.post(`/api/runs/${run}/answers/${opened.id}`, { value: {} }), /409/, way);
  }
});

test("a message that was not sent survives a reload, and is sent once", async () => {
  const run = await greet();
  const page = await open(run, "", [/ERR_FAILED/]);
  const keys = [];
  page.on("request", (request) => {
    if (request.url().endsWith("/messages")) keys.push(request.headers()["idempotency-key"]);
  });
  await page.route("**/messages", (route) => route.abort());
  await page.getByRole("textbox", { name: "Your message" }).fill("Do not lose me");
  await page.keyboard.press("Enter");
  await page.getByText("not sent yet").waitFor();
  await page.unroute("**/messages");
  await page.route("**/messages", (route) => route.abort(), { times: 1 });
  await page.reload();
  const log = page.getByRole("log");
  await log.getByText("Do not lose me").waitFor();
  world.model.say("I have it.");
  await log.getByText("I have it.").waitFor();
  assert.equal(new Set(keys).size, 1);
  assert.equal(await log.getByText("Do not lose me").count(), 1);
  assert.equal((await kindsOf(run)).filter((kind) => kind === "RequestAnswered").length, 2);
  await page.reload();
  await log.getByText("I have it.").waitFor();
  assert.equal(await page.getByText("not sent yet").count(), 0);
});

test("a run that was deleted while it is open says so, and starts again with the same inputs", async () => {
  const run = await greet();
  const page = await open(run, "", [/404/]);
  await page.getByText("live", { exact: true }).waitFor();
  await world.stopServer();
  const journal = join(world.workspace, ".weft/journal.db");
  const done = spawnSync(join(ROOT, ".venv/bin/python"), ["-c", DELETE, journal, run], { encoding: "utf8" });
  assert.equal(done.status, 0, done.stderr);
  await world.startServer();
  const banner = page.getByRole("alert");
  await banner.getByText("This run is no longer on the server").waitFor();
  await banner.getByText("HTTP404").waitFor();
  await page.getByRole("log").getByText("Welcome!").waitFor();
  assert.equal(await page.getByRole("textbox", { name: "Your message" }).count(), 0);
  for (const name of ["Fork", "Stop"]) {
    assert.equal(await page.getByRole("button", { name, exact: true }).count(), 0, name);
  }
  assert.deepEqual(await findAxeViolations(page), []);
  world.model.say("Welcome again!");
  await banner.getByRole("button", { name: "New run with the same start" }).click();
  await page.getByRole("log").getByText("Welcome again!").waitFor();
  await page.getByRole("log").getByText("Hello", { exact: true }).waitFor();
  assert.notEqual(new URL(page.url()).pathname, `/runs/${run}`);
});

test("a page whose session has ended says so, and goes on after signing in", async () => {
  const key = await world.keyOf("leaver");
  world.model.say("Welcome!");
  const { run } = await world.post("/api/runs", { workflow: "HelloWorld", message: "Hello", force: true }, key);
  await world.settled(run);
  const page = await world.open(`/runs/${run}`, { user: "leaver", expects: [OFFLINE, /401/] });
  pages.push(page);
  await page.getByText("live", { exact: true }).waitFor();
  await world.stopServer();
  await page.getByText("offline, showing up to event").waitFor();
  await page.context().clearCookies();
  await world.startServer();
  const banner = page.getByRole("alert");
  await banner.getByText("You are not signed in any more").waitFor();
  await banner.getByRole("button", { name: "Sign in again" }).click();
  await page.getByLabel("API key").fill(key);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByText("live", { exact: true }).waitFor();
  assert.equal(new URL(page.url()).pathname, `/runs/${run}`);
  await page.getByRole("log").getByText("Welcome!").waitFor();
});

test("of two tabs with one question, one answers; the other one shows that answer", async () => {
  const run = await start({ workflow: "CustomerSupportRouter", message: "Charged" }, ASKS);
  const tabs = [await open(run, "", [/409/]), await open(run, "", [/409/])];
  let sendBoth;
  const bothSent = new Promise((resolve) => { sendBoth = resolve; });
  let sent = 0;
  const answers = tabs.map((tab) => tab.waitForResponse("**/answers/*"));
  world.model.say(DECISION, "Which day was it?");
  for (const [index, tab] of tabs.entries()) {
    await tab.route("**/answers/*", async (route) => {
      sent += 1;
      if (sent === tabs.length) sendBoth();
      // Both have answered before the server learns of one.
      await bothSent;
      await route.continue();
    });
    await tab.bringToFront();
    await tab.frameLocator("iframe").getByRole("textbox").fill(`Answer ${index}`);
    await tab.frameLocator("iframe").getByRole("button", { name: "Send" }).click();
  }
  const statuses = (await Promise.all(answers)).map((answer) => answer.status());
  const cards = tabs.map((tab) => tab.getByRole("article", { name: "Which one?" }));
  await Promise.all(cards.map((card) => card.getByText("answered by me").waitFor()));
  assert.deepEqual(statuses.toSorted(), [200, 409]);
  const [one, other] = await Promise.all(cards.map((card) => card.innerText()));
  assert.equal(one, other);
  assert.match(one, /Answer [01]/);
  await tabs[0].getByRole("log").getByText("Which day was it?").waitFor();
});

test("a component that breaks is replaced by the form, which answers", async () => {
  const run = await start({ workflow: "CustomerSupportRouter", message: "Charged" }, ASKS);
  const page = await world.open("/", { expects: [OFFLINE, /boom/] });
  pages.push(page);
  const source = "export default function Broken() { throw new Error('boom'); }";
  await page.route("**/components/*", (route) => route.fulfill({ json: { name: "ClarificationRequest", source } }));
  await page.goto(`/runs/${run}`);
  await page.getByText("This question has a card of its own, but").waitFor();
  await page.getByRole("heading", { name: "Which one?" }).waitFor();
  await page.getByLabel("Your answer").fill("Both of them");
  world.model.say(DECISION, "Which day was it?");
  await page.getByRole("button", { name: "Send", exact: true }).first().click();
  await page.getByText("answered by me").waitFor();
  await page.getByRole("article", { name: "Which one?" }).getByText("Both of them").waitFor();
  await page.getByRole("log").getByText("Which day was it?").waitFor();
});

test("the component of the documentation asks, and its answer is that of the tool", async () => {
  const asks = { calls: [{ tool: "confirm", arguments: { question: "Refund 20 euros?" } }] };
  const run = await start({ workflow: "Desk", message: "Charged" }, asks);
  const page = await open(run);
  const frame = page.getByRole("article", { name: "Refund 20 euros?" }).frameLocator("iframe");
  await frame.getByRole("heading", { name: "Refund 20 euros?" }).waitFor();
  await frame.getByLabel("Your choice").fill("accept");
  world.model.say("It is on its way.");
  await frame.getByRole("button", { name: "Confirm" }).click();
  await page.getByRole("log").getByText("It is on its way.").waitFor();
  const events = (await world.get(`/api/runs/${run}/events?limit=500`)).items;
  assert.deepEqual(events.find(({ kind }) => kind === "ToolReturned").data.value, { choice: "accept" });
  // A cancelled question has no answer: the tool fails.
  world.model.say(asks, "As you like.");
  await page.getByRole("textbox", { name: "Your message" }).fill("Again");
  await page.keyboard.press("Enter");
  await frame.getByRole("button", { name: "Cancel" }).click();
  await page.getByRole("log").getByText("As you like.").waitFor();
});

test("a fork repeats a turn with another value, and its parent stays as it is", async () => {
  const run = await start({ workflow: "CustomerSupportRouter", message: "Charged" }, DECISION, "Which day was it?");
  const before = JSON.stringify(await world.get(`/api/runs/${run}/events`));
  const events = JSON.parse(before).items;
  const at = events.find(({ kind }) => kind === "HandedOff").seq;
  const page = await open(run, `?at=${at}`);
  await page.getByRole("button", { name: "Fork from here" }).click();
  const dialog = page.getByRole("dialog", { name: "Fork at turn 1 of RouterAgent" });
  await dialog.getByText("This run stays as it is.").waitFor();
  await dialog.getByLabel("Change a variable").selectOption("urgency");
  await dialog.getByLabel("urgency", { exact: true }).selectOption("high");
  assert.equal(await dialog.getByLabel("Message").inputValue(), "Charged");
  await dialog.getByLabel("Message").fill("Charged three times");
  await dialog.getByLabel("Model").selectOption("sample");
  await dialog.getByRole("button", { name: "Fork", exact: true }).click();
  await page.getByText("Copied up to here from run").waitFor();
  await page.getByRole("link", { name: /^fork of/ }).waitFor();
  await page.getByRole("log").getByText("Charged three times").waitFor();
  const child = new URL(page.url()).pathname.split("/")[2];
  assert.notEqual(child, run);
  const edit = (await world.get(`/api/runs/${child}/events`)).items.find(
    ({ kind, data }) => kind === "VariableSet" && data.writer === "edit",
  );
  assert.deepEqual(edit.data, { name: "urgency", value: "high", writer: "edit" });
  assert.equal(JSON.stringify(await world.get(`/api/runs/${run}/events`)), before);
});

test("a run is stopped, and started again with the same message", async () => {
  const run = await greet({ text: "Never said.", delay: 30_000 });
  const page = await open(run);
  await page.getByRole("textbox", { name: "Your message" }).fill("Think for long");
  await page.keyboard.press("Enter");
  await page.getByText("is working", { exact: true }).waitFor();
  await page.getByRole("button", { name: "Stop" }).click();
  await page.getByText("me asked to stop now").waitFor();
  await page.getByText("This run has ended.").waitFor();
  world.model.say("Hello again!");
  await page.getByRole("button", { name: "New run with the same start" }).click();
  await page.getByRole("log").getByText("Hello again!").waitFor();
  assert.notEqual(new URL(page.url()).pathname, `/runs/${run}`);
  await page.getByRole("log").getByText("Hello", { exact: true }).waitFor();
});

test("a failed turn is tried again as a new run", async () => {
  const run = await greet();
  const page = await open(run);
  world.model.say({ status: 400, text: "no" });
  await page.getByRole("textbox", { name: "Your message" }).fill("Fail");
  await page.keyboard.press("Enter");
  await page.getByText("GreeterAgent got no answer from its model").waitFor();
  world.model.say("It worked.");
  await page.getByRole("button", { name: "Retry now" }).click();
  await page.getByRole("log").getByText("It worked.").waitFor();
  await page.getByText("Copied up to here from run").waitFor();
});

test("a question of an artifact is asked beside the conversation", async () => {
  const path = "/api/workflows/CustomerSupportRouter/files/tools.json";
  const file = await world.get(path);
  const content = file.content.replace('"mode": "inline"', '"mode": "artifact"');
  await world.call("PUT", path, { content, digest: file.digest });
  const run = await start({ workflow: "CustomerSupportRouter", message: "Charged" }, ASKS);
  const page = await open(run, "?panel=timeline");
  await page.getByText("asks beside the conversation").waitFor();
  await page.getByRole("button", { name: "Open", exact: true }).click();
  const pane = page.getByRole("tabpanel");
  await pane.frameLocator("iframe").getByLabel("Both").click();
  world.model.say(DECISION, "Which day was it?");
  await pane.frameLocator("iframe").getByRole("button", { name: "Send" }).click();
  await pane.getByText("answered by me").waitFor();
  await page.getByText("was answered").waitFor();
});
