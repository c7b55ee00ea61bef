// The run workspace: a conversation, a flow and a board, opened and looked into.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { after, before, test } from "node:test";

import { startWorld } from "./harness.mjs";

const DECISION = {
  domain: "finance", urgency: "normal", summary: "Charged twice for Premium.",
  agent_message: "Our payment team takes this on.",
};
/** No agent but the first may see it: the provider of the editor drops the field. */
const CONTACT = "canary-contact";
/** A workflow whose agent gets no more than 20 tokens of the conversation. */
const SHORT = {
  "orchestrator.json": { workflow_name: "Short", initial_agent: "Clerk" },
  "agents.json": {
    agents: [
      {
        agent_name: "Clerk",
        human_interaction: "context",
        prompt_sections: [{ id: "role", content: "You answer customers." }],
        context: [{ kind: "history", max_tokens: 20 }],
      },
    ],
  },
  "handoffs.json": { handoff_rules: [{ source_agent: "Clerk", target_agent: "user" }] },
};
const STORY = { headline: "Rain over the harbour", text: "It rained all night." };

let world;
let conversation;
let flow;
let board;

before(async () => {
  const files = Object.entries(SHORT).map(([name, part]) => [`workflows/Short/${name}`, JSON.stringify(part)]);
  world = await startWorld({ model: "scripted", files: Object.fromEntries(files) });
  world.model.say(
    { calls: [{ tool: "look_up_customer" }] },
    JSON.stringify(DECISION),
    "Which **amount** was it?",
  );
  conversation = await run({ workflow: "CustomerSupportRouter", message: "I was charged twice" });
  world.model.decide = ({ response_format }) => {
    const name = response_format?.json_schema?.name;
    if (name === "FactCheck") return JSON.stringify({ headline: STORY.headline, sound: true, remarks: [] });
    return JSON.stringify(name === "Edition" ? { ...STORY, note: "Checked." } : STORY);
  };
  flow = await run({ workflow: "OrderProcessing", values: { card: "declined" } });
  const lead = { headline: "Rain", source: "radio", contact: CONTACT, urgency: 3 };
  const published = await world.post("/api/boards/NewsDesk/artifacts", { type: "Lead", payload: lead });
  board = { run: published.run };
  while ((await events(board.run)).filter(({ kind }) => kind === "TurnEnded").length < 3);
  board.events = await events(board.run);
});
after(() => world.close());

/** Start a run; return it with its events when it waits or has ended. */
async function run(body) {
  const { run } = await world.post("/api/runs", body, await world.keyOf());
  await world.settled(run);
  return { run, events: await events(run) };
}

async function events(run) {
  return (await world.get(`/api/runs/${run}/events?limit=500`)).items;
}

function find({ events }, kind, index = 0) {
  return events.filter((event) => event.kind === kind)[index];
}

function open({ run }, query = "", options = {}) {
  return world.open(`/runs/${run}${query}`, options);
}

test("a conversation shows what was said and done, and why it was handed off", async () => {
  const page = await open(conversation);
  const log = page.getByRole("log");
  await log.getByText("I was charged twice").waitFor();
  await log.getByText("Our payment team takes this on.", { exact: true }).waitFor();
  assert.equal(await log.locator("strong", { hasText: "amount" }).count(), 1, "Markdown");
  await log.getByText("look_up_customer").click();
  await log.getByText('"plan": "premium"').waitFor();
  await log.getByText("RouterAgent handed off to FinanceSpecialist").waitFor();
  await log.getByText("current_domain was finance").waitFor();
  await log.getByRole("button", { name: "rule 4" }).click();
  const rules = log.getByRole("list", { name: "Rules of RouterAgent" }).getByRole("listitem");
  await rules.filter({ hasText: "'finance'" }).getByText("taken").waitFor();
  await rules.filter({ hasText: "'tech'" }).getByText("false").waitFor();
  await rules.filter({ hasText: "'general'" }).getByText("not asked").waitFor();
});

test("a reply that its tool has not accepted yet is not said", async () => {
  const page = await open(conversation, `?at=${find(conversation, "ModelReplied", 1).seq}`);
  await page.getByText("Not said: its tool has not accepted it.").waitFor();
  assert.equal(await page.getByText("Our payment team takes this on.", { exact: true }).count(), 0);
});

test("an address with an event shows the same after a reload", async () => {
  const at = find(conversation, "HandedOff").seq;
  const page = await open(conversation, `?at=${at}&panel=context`);
  const past = page.getByText(`You are looking at event ${at} of ${conversation.events.length}.`);
  await past.waitFor();
  await page.getByText("current_domain", { exact: true }).waitFor();
  assert.equal(await page.getByText("Which amount was it?").count(), 0);
  const shown = await page.locator("main").innerText();
  await page.reload();
  await past.waitFor();
  await page.getByText("current_domain", { exact: true }).waitFor();
  assert.equal(await page.locator("main").innerText(), shown);
  await page.getByRole("button", { name: "Back to the end" }).click();
  await page.getByText("Which amount was it?").waitFor();
});

test("a variable says what it was, who set it, and what led to it", async () => {
  const at = find(conversation, "TurnEnded").seq;
  const page = await open(conversation, `?at=${at}&panel=context`);
  const variable = page.locator("details", { hasText: "current_domain" });
  assert.match(await variable.innerText(), /unknown\s*→\s*finance\s+trigger · turn 1/);
  await variable.locator("summary").click();
  await variable.getByText("analyze_request is called").waitFor();
  const reply = find(conversation, "ModelReplied", 1).seq;
  await variable.getByRole("button", { name: `event ${reply}`, exact: true }).click();
  await page.getByText(`You are looking at event ${reply} of`).waitFor();
  await page.waitForURL(new RegExp(`at=${reply}`));
});

test("the prompt that is shown is the one that was sent", async () => {
  const last = find(conversation, "ContextAssembled", 2);
  const page = await open(conversation, "?panel=context&show=prompt");
  await page.getByText("same as shown").waitFor();
  const hash = await page.locator(`[title="${last.data.digest}"]`).innerText();
  assert.ok(last.data.digest.startsWith(hash));
  const system = world.model.requests[2].messages.find(({ role }) => role === "system").content;
  const pieces = page.locator("details", { hasText: /^(prompt|variables)/ });
  for (const piece of await pieces.all()) {
    const text = await piece.locator("pre").textContent();
    assert.ok(system.includes(text), text);
  }
  assert.ok((await pieces.count()) >= 4);
  const answer = await world.get(`/api/runs/${conversation.run}/prompts/${last.turn}`);
  const shown = answer.prompts.find(({ seq }) => seq === last.seq).messages;
  const texts = (messages) => messages.map(({ role, content }) => [role, content ?? null]);
  assert.deepEqual(texts(shown), texts(world.model.requests[2].messages));
});

test("what a limit of tokens left out of a prompt is named, and the hash is that of what was sent", async () => {
  world.model.say("It is too high.", "I am.");
  const { run: short } = await run({ workflow: "Short", message: `The invoice of March: ${"too high, ".repeat(9)}` });
  await world.post(`/api/runs/${short}/messages`, { text: "Are you there?" });
  while ((await events(short)).filter(({ kind }) => kind === "TurnEnded").length < 2);
  const page = await open({ run: short }, "?panel=context&show=prompt");
  await page.getByRole("heading", { name: "Left out 1" }).waitFor();
  await page.getByText(/everything before event \d+: over the budget of 20 tokens/).waitFor();
  await page.getByText("same as shown").waitFor();
  const sent = world.model.requests.at(-1).messages;
  assert.doesNotMatch(JSON.stringify(sent), /invoice/);
  assert.doesNotMatch(await page.getByRole("tabpanel").innerText(), /invoice/);
  // The hash is over the messages, the tools (there are none) and the form of the reply (none).
  const hash = createHash("sha256").update(`${JSON.stringify(sent)}[[],null]`).digest("hex");
  await page.locator(`[title="${hash}"]`).waitFor();
});

test("what a provider removed from a prompt is marked, and is in no answer about it", async () => {
  const editor = board.events.findLast(({ kind }) => kind === "ContextAssembled");
  assert.equal(editor.data.agent, "editor");
  const bodies = [];
  const page = await open(board);
  page.on("response", (response) => {
    if (response.url().includes("/prompts/")) bodies.push(response.text());
  });
  await page.goto(`/runs/${board.run}?panel=context&show=prompt&at=${editor.seq}`);
  const piece = page.getByRole("tabpanel").locator("details", { hasText: /^board/ });
  await piece.getByText("2 removed or replaced").waitFor();
  if ((await piece.getAttribute("open")) === null) await piece.locator("summary").click();
  await piece.getByText("▇ contact: removed or replaced before it was sent").waitFor();
  assert.doesNotMatch(await page.getByRole("tabpanel").innerText(), new RegExp(CONTACT));
  const [body, ...more] = await Promise.all(bodies);
  assert.match(body, /Rain over the harbour/);
  assert.doesNotMatch([body, ...more].join("\n"), new RegExp(CONTACT));
  const request = world.model.requests.find((each) => JSON.stringify(each).includes("You are the editor"));
  assert.doesNotMatch(JSON.stringify(request), new RegExp(CONTACT));
});

test("a prompt is compared with the one before of the same agent", async () => {
  const at = find(conversation, "ContextAssembled", 1).seq;
  const page = await open(conversation, `?at=${at}&panel=context&show=prompt`);
  await page.getByRole("button", { name: "Compare with its call before" }).click();
  const changed = page.locator("details[open]", { hasText: "customer_summary" });
  await changed.getByText("- customer_summary (The customer in one line.): not known yet").waitFor();
  await changed.getByText("+ customer_summary (The customer in one line.): Ada, premium plan").waitFor();
});

test("the graph follows the cursor", async () => {
  const at = find(conversation, "TurnStarted", 1).seq;
  const page = await open(conversation, `?at=${at}&panel=graph`);
  const card = page.getByRole("button", { name: /^FinanceSpecialist/ });
  await card.getByText("working").waitFor();
  await page.getByRole("listitem").filter({ hasText: "taken" }).getByText("→ FinanceSpecialist").waitFor();
  await page.keyboard.press("k");
  await card.getByText("×1").waitFor({ state: "detached" });
});

test("the timeline has bars, and every event with its data", async () => {
  const page = await open(conversation, "?panel=timeline");
  await page.getByRole("button", { name: /1 · RouterAgent model, call 1/ }).waitFor();
  await page.getByText("Events", { exact: true }).click();
  await page.getByText(`${conversation.events.length} events`).waitFor();
  await page.getByRole("searchbox").fill("current_domain = finance");
  await page.getByText("No event has these words.").waitFor();
  await page.getByRole("searchbox").fill("current_domain");
  const row = page.getByRole("region", { name: "Events" }).getByRole("button", { name: /VariableSet/ });
  await row.click();
  await page.getByText('"writer": "trigger"').waitFor();
});

test("keys step, play, and open panes", async () => {
  const page = await open(conversation);
  const count = conversation.events.length;
  await page.getByText("Which amount was it?").waitFor();
  for (const [key, tab] of [["g", "Graph"], ["t", "Timeline"], ["c", "Context"]]) {
    await page.keyboard.press(key);
    await page.getByRole("tab", { name: tab, selected: true }).waitFor();
  }
  await page.keyboard.press("k");
  await page.keyboard.press("k");
  await page.getByText(`You are looking at event ${count - 2} of ${count}.`).waitFor();
  await page.keyboard.press("j");
  await page.getByText(`You are looking at event ${count - 1} of ${count}.`).waitFor();
  await page.keyboard.press("Escape");
  const box = page.getByRole("textbox", { name: "Your message" });
  await box.fill("jkg");
  assert.equal(await box.inputValue(), "jkg", "keys are for the text while somebody writes");
  await page.getByRole("combobox", { name: "Speed" }).selectOption("16");
  await page.getByRole("log").focus();
  await page.keyboard.press(" ");
  await page.getByText(`You are looking at event`).waitFor();
  await page.getByRole("button", { name: "Play" }).waitFor();
  await box.waitFor();
});

test("brackets open the run before and after this one, with the same pane", async () => {
  const page = await open(flow, "?panel=timeline");
  await page.getByRole("heading", { name: "OrderProcessing", level: 1 }).waitFor();
  await page.keyboard.press("[");
  await page.getByRole("heading", { name: "CustomerSupportRouter", level: 1 }).waitFor();
  await page.waitForURL(`**/runs/${conversation.run}?panel=timeline`);
  await page.keyboard.press("]");
  await page.waitForURL(`**/runs/${flow.run}?panel=timeline`);
  await page.getByRole("heading", { name: "OrderProcessing", level: 1 }).waitFor();
});

test("a flow shows its steps, what failed, and what was undone", async () => {
  const page = await open(flow, "?panel=graph");
  const log = page.getByRole("log");
  await log.getByText("ChargeCard failed in its turn").waitFor();
  await log.getByText("is undone").waitFor();
  await log.getByText("Everything up to here is kept.").waitFor();
  await page.getByRole("button", { name: /^ChargeCard/ }).getByText("undone").waitFor();
  await page.getByText("This run has ended.").waitFor();
});

test("a board shows its artifacts and whom they woke", async () => {
  const page = await open(board, "?panel=board");
  const pane = page.getByRole("tabpanel");
  const story = pane.getByRole("listitem").filter({ has: page.getByRole("heading", { name: "Story" }) });
  await story.getByText("It rained all night.").waitFor();
  await story.getByRole("button", { name: "editor, turn" }).click();
  await page.getByText(/You are looking at event/).waitFor();
  await page.keyboard.press("g");
  await page.getByRole("button", { name: /^editor/ }).getByText("×1").waitFor();
});

test("an end user gets the conversation, and nothing of what is behind it", async () => {
  const page = await open(conversation, "?panel=context", { roles: ["end_user"] });
  await page.getByText("Which amount was it?").waitFor();
  assert.equal(await page.getByRole("tab").count(), 0);
  assert.equal(await page.getByRole("slider").count(), 0);
  assert.doesNotMatch(await page.locator("main").innerText(), /look_up_customer|current_domain|tokens/);
});

test("on a phone there is the conversation, and the rest on request", async () => {
  const page = await open(conversation, "", { phone: true });
  await page.getByText("Which amount was it?").waitFor();
  assert.equal(await page.getByRole("slider").count(), 0);
  await page.getByRole("button", { name: "More of this run" }).click();
  await page.getByRole("menuitem", { name: "Show what is behind it" }).click();
  await page.getByRole("tab", { name: "Timeline" }).click();
  await page.getByRole("button", { name: "Back to the conversation" }).click();
  await page.getByRole("textbox", { name: "Your message" }).waitFor();
});

test("a run that does not exist says so", async () => {
  const page = await open({ run: "nothing" }, "", { expects: [/404/] });
  await page.getByRole("link", { name: "Show all runs" }).waitFor();
});
