// What operators and administrators do: runs, starts, keys.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { startWorld } from "./harness.mjs";

const RUNS = 104;

const agents = [
  { agent_name: "Writer", prompt_sections: [{ id: "role", heading: "[ROLE]", content: "You write." }] },
];

/** A workflow that one agent ends in one turn. */
function workflow(name, trigger) {
  const orchestrator = {
    workflow_name: name,
    description: "When it starts, one agent writes a sentence.",
    initial_agent: "Writer",
    startup_mode: "BackendOnly",
    max_turns: 1,
    trigger,
  };
  const handoff_rules = [{ source_agent: "Writer", target_agent: "terminate" }];
  return {
    [`workflows/${name}/orchestrator.json`]: JSON.stringify(orchestrator),
    [`workflows/${name}/agents.json`]: JSON.stringify({ agents }),
    [`workflows/${name}/handoffs.json`]: JSON.stringify({ handoff_rules }),
  };
}

let world;

before(async () => {
  world = await startWorld({
    model: "scripted",
    files: {
      ...workflow("Nightly", { type: "schedule", cron: "0 3 * * *", catch_up: "last" }),
      ...workflow("Orders", { type: "webhook", secret_env: "ORDERS_SECRET" }),
    },
  });
});
after(() => world.close());

test("filters of runs are in the address; older runs are loaded, new ones appear; a run is stopped", async () => {
  for (let count = 0; count < RUNS; count += 1) {
    await world.post("/api/runs", { workflow: "Nightly", force: true });
  }
  const { run } = await world.post("/api/runs", { workflow: "HelloWorld" });
  const title = `Run …${run.slice(-6)}`;
  const page = await world.open("/runs");
  await page.getByRole("link", { name: title }).waitFor();

  await page.getByRole("button", { name: "Show older runs" }).click();
  await page.getByRole("button", { name: "Show older runs" }).waitFor({ state: "detached" });
  const rows = page.getByRole("region", { name: "Runs" }).getByRole("listitem");
  assert.equal(await rows.first().getAttribute("aria-setsize"), String(RUNS + 1));
  const inDocument = await rows.count();
  assert.ok(inDocument < 40, `${inDocument} rows are in the document`);

  await page.getByText("Waiting", { exact: true }).click();
  await page.getByRole("combobox", { name: "Workflow" }).selectOption("HelloWorld");
  await page.waitForFunction(() => location.search === "?status=waiting&workflow=HelloWorld");
  await page.reload();
  assert.equal(await page.getByRole("combobox", { name: "Workflow" }).inputValue(), "HelloWorld");
  await page.getByRole("button", { name: `Stop ${title}` }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Stop" }).click();
  await page.getByRole("heading", { name: "No run fits these filters" }).waitFor();
  await page.getByRole("button", { name: "Show all runs" }).click();
  await rows.filter({ hasText: title }).getByText("stopped").waitFor();

  const { run: later } = await world.post("/api/runs", { workflow: "HelloWorld", force: true });
  await page.getByRole("link", { name: `Run …${later.slice(-6)}` }).waitFor();
});

test("a schedule is paused, resumed and fired by hand, and its log names the run", async () => {
  const page = await world.open("/starts", { user: "olga", roles: ["operator"] });
  const start = page.getByRole("article", { name: "Nightly" });
  await start.getByText("Every day at 03:00 (UTC)").waitFor();
  await start.getByRole("button", { name: "Pause" }).click();
  await start.getByText("paused").waitFor();
  await start.getByRole("button", { name: "Resume" }).click();
  await start.getByText("on", { exact: true }).waitFor();

  await start.getByRole("button", { name: "Fire now" }).click();
  const link = start.getByRole("status").getByRole("link");
  const run = (await link.getAttribute("href")).split("/").at(-1);
  await start.getByText("Log").click();
  await start.getByRole("row").filter({ hasText: "hand" }).getByRole("link").waitFor();
  const row = await world.settled(run);
  assert.deepEqual([row.workflow, row.outcome], ["Nightly", "completed"]);

  const hook = page.getByRole("article", { name: "Orders" });
  await hook.getByText(`${world.url}/hooks/local/Orders`).waitFor();
  assert.equal(await page.getByText("Events sent to others").count(), 0);
});

test("a webhook that gets the events of runs is added with a secret, and deleted", async () => {
  const page = await world.open("/starts", { expects: [/status of 4\d\d/] });
  await page.getByRole("button", { name: "Add a webhook" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Address").fill("http://127.0.0.1:9/events");
  await dialog.getByLabel("Kinds of events").fill("RunEnde");
  await dialog.getByRole("button", { name: "Add" }).click();
  await dialog.getByRole("alert").getByText("RunEnded").waitFor();
  await dialog.getByLabel("Kinds of events").fill("RunEnded");
  await dialog.getByRole("button", { name: "Add" }).click();
  await page.getByText("Copy it now").waitFor();
  await page.getByRole("button", { name: "Delete" }).click();
  await dialog.getByRole("button", { name: "Delete" }).click();
  await page.getByText("No address gets the events of runs.").waitFor();
});

test("a key is made, shown once, used and deleted", async () => {
  const page = await world.open("/settings?tab=access");
  await page.getByRole("button", { name: "Make a key" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByRole("textbox", { name: "User" }).fill("mia");
  await dialog.getByLabel("What it is for").fill("phone");
  await dialog.getByLabel("end user").check();
  await dialog.getByLabel("Other roles").fill("manager");
  await dialog.getByRole("button", { name: "Make the key" }).click();
  const key = await page.getByRole("status").locator("code").innerText();
  const me = await world.get("/api/me", key);
  assert.deepEqual([me.user, me.roles], ["mia", ["end_user", "manager"]]);

  await page.reload();
  const row = page.getByRole("row").filter({ hasText: "phone" });
  await row.getByRole("button", { name: "Delete" }).click();
  assert.equal(await page.getByText(key).count(), 0);
  await dialog.getByRole("button", { name: "Delete" }).click();
  await row.waitFor({ state: "detached" });
  await assert.rejects(world.get("/api/me", key), /401/);
});

test("a model is tested with one call", async () => {
  const page = await world.open("/settings?tab=models", { user: "dora", roles: ["developer"] });
  world.model.say("I am here");
  const calls = world.model.requests.length;
  await page.getByRole("button", { name: "Test openai:scripted" }).click();
  await page.getByText("“I am here”").waitFor();
  assert.equal(world.model.requests.length, calls + 1);
});

test("each role sees the settings that it may read", async () => {
  const tabsOf = async (roles) => {
    const page = await world.open("/settings", { user: "rea", roles });
    await page.getByRole("tab", { name: "You" }).waitFor();
    return page.getByRole("tab").allInnerTexts();
  };
  assert.deepEqual(await tabsOf(["end_user"]), ["You"]);
  assert.deepEqual(await tabsOf(["developer"]), ["You", "Models"]);
  assert.deepEqual(await tabsOf(["operator"]), ["You", "Models", "Server"]);

  const page = await world.open("/settings?tab=server");
  const model = page.getByRole("row").filter({ hasText: "WEFT_MODEL" }).first();
  await model.getByText("environment").waitFor();
});
