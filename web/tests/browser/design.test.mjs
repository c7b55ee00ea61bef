// A design from its brief to a run of the package, with the designer that needs no model.

import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { findAxeViolations, startWorld } from "./harness.mjs";

let world;
let page;
before(async () => {
  world = await startWorld();
});
after(() => world.close());

const run = () => page.url().split("/design/")[1].split("?")[0];

test("a brief leads to an interview, and its answers to a plan", async () => {
  page = await world.open("/design");
  await page.getByText("There is no design yet").waitFor();
  await page.getByRole("button", { name: "Invoice approval" }).click();
  assert.deepEqual(await findAxeViolations(page), []);
  await page.getByRole("button", { name: "Begin the design" }).click();
  const frame = page.frameLocator("iframe");
  await frame.getByLabel("Who approves something").fill("chief accountant");
  assert.deepEqual(await findAxeViolations(page), []);
  await frame.getByRole("button", { name: "Send" }).click();
  const approval = page.getByRole("article", { name: "ChiefAccountantApproval" });
  await approval.first().waitFor();
  await page.getByRole("region", { name: "Sequence", exact: true }).waitFor();
  await page.getByRole("cell", { name: "data_entity" }).first().waitFor();
  await page.getByRole("tab", { name: "Questions" }).click();
  await page.getByText("chief accountant", { exact: true }).waitFor();
});

test("comments on elements lead to a second round, whose changes are marked", async () => {
  await page.getByRole("tab", { name: "Plan" }).click();
  await page.getByRole("button", { name: "Comment on Module 1", exact: false }).click();
  await page.getByLabel("Your comment on Module 1", { exact: false }).fill("add specialist Contract Analyst");
  assert.deepEqual(await findAxeViolations(page), []);
  await page.getByRole("button", { name: "Request changes (1)" }).click();
  assert.deepEqual(await findAxeViolations(page), []);
  await page.getByRole("button", { name: "Send" }).click();
  await page.getByRole("heading", { name: "What round 2 changes" }).waitFor();
  await page.getByText("ModuleAgents[ContractAnalyst]").waitFor();
  await page.getByRole("article", { name: "ContractAnalyst" }).getByText("new", { exact: true }).waitFor();
  await page.getByText("Round 1", { exact: true }).click();
  await page.getByText("is an earlier round").waitFor();
  assert.equal(await page.getByRole("article", { name: "ContractAnalyst" }).count(), 0);
  assert.equal(await page.getByRole("button", { name: "Approve", exact: true }).count(), 0);
  await page.getByText("Round 2", { exact: true }).click();
});

test("the plan of this hash is approved, and the package is written", async () => {
  await page.getByRole("button", { name: "Approve", exact: true }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByText("10 agents write the package").waitFor();
  const { hash } = await world.get(`/api/plans/${run()}`);
  await dialog.getByText(hash.slice(0, 12)).waitFor();
  await dialog.getByRole("button", { name: "Approve" }).click();
  await page.getByRole("tab", { name: "Files" }).click();
  await page.getByRole("button", { name: "Run it now" }).waitFor();
  await page.getByText("every agent and every way visited").waitFor();
  assert.deepEqual(await findAxeViolations(page), []);
  const plan = await world.get(`/api/plans/${run()}`);
  assert.equal(plan.acceptance, "accepted");
  assert.equal(plan.hash, hash);
});

test("a component of the package is previewed with a made-up payload", async () => {
  await page.getByRole("button", { name: /Approval\.jsx/ }).click();
  await page.getByText("Preview", { exact: true }).click();
  const frame = page.frameLocator("iframe");
  await frame.getByRole("combobox").selectOption("approve");
  await frame.getByRole("button", { name: "Send" }).click();
  await page.getByText('It answered {"decision":"approve"', { exact: false }).waitFor();
  assert.deepEqual(await findAxeViolations(page), []);
});

test("the package is downloaded, installed after a look, and run", async () => {
  const [saved] = await Promise.all([
    page.waitForEvent("download"),
    page.getByRole("link", { name: "Download" }).click(),
  ]);
  assert.match(saved.suggestedFilename(), /\.zip$/);
  const design = run();
  await page.getByRole("button", { name: "Run it now" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByText("a new package").waitFor();
  assert.deepEqual(await findAxeViolations(page), []);
  await dialog.getByRole("button", { name: "Install and open" }).click();
  await page.waitForURL(/\/workflows\//);
  const name = page.url().split("/workflows/")[1].split("?")[0];
  assert.ok(existsSync(join(world.workspace, "workflows", name, "orchestrator.json")));
  assert.equal((await world.settled(design)).outcome, "completed");
  await page.getByRole("button", { name: "Start" }).waitFor();
  for (const box of await page.getByRole("textbox").all()) await box.fill("Invoice 7");
  await page.getByRole("button", { name: "Start" }).click();
  await page.waitForURL(/\/runs\//);

  page = await world.open(`/design/${design}`, { theme: "dark" });
  await page.getByRole("tab", { name: "Plan" }).click();
  await page.getByText("accepted").waitFor();
  assert.deepEqual(await findAxeViolations(page), []);
});
