// Designs from words, forms and edited plans to a run of the package, without a language model.

import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { findAxeViolations, startWorld } from "./harness.mjs";

/** A form whose scenario expects what its workflow does not do. */
const NOTES = `
workflow: Notes
description: Reads a note and files it.
steps:
  - {name: Reader, by: agent, task: Say what the note is about., outcomes: {clear: Filer, odd: end}}
  - {name: Filer, by: person, who: user, outcomes: {filed: end}}
scenarios:
  - {says: [A note.], takes: {Reader: odd}, expect: [{outcome: failed}]}
`;

let world;
let page;
before(async () => {
  world = await startWorld();
});
after(() => world.close());

const run = () => page.url().split("/design/")[1].split("?")[0];

/** Return what is drawn too far below or over what stands before it in a frame. */
function overlaps(frame) {
  return frame.locator("body").evaluate((body) => {
    const boxes = [...body.querySelectorAll("h2, h4, p, li, pre, summary, label, button")]
      .filter((each) => each.checkVisibility())
      .map((each) => ({ text: each.textContent.slice(0, 40), ...each.getBoundingClientRect().toJSON() }))
      .filter(({ height }) => height > 0);
    return boxes.slice(1).flatMap((box, index) => {
      const before = boxes[index];
      const isBeside = Math.abs(box.top - before.top) < 2;
      const gap = box.top - before.bottom;
      return isBeside || (gap > -1 && gap < 120) ? [] : [`${before.text} | ${box.text}: ${gap}`];
    });
  });
}

/** Type a text over all of the open one. */
async function type(text) {
  await page.getByRole("textbox", { name: /\.yaml$/ }).click();
  await page.keyboard.press("Control+a");
  await page.keyboard.insertText(text);
}

test("words lead to an interview, and its answers to a skeleton that says what is open", async () => {
  page = await world.open("/design", { expects: [/422/] });
  await page.getByText("There is no design yet").waitFor();
  await page.getByRole("button", { name: "Begin the design" }).click();
  await page.getByText("Describe the workflow, or begin with an example.").waitFor();
  await page.getByRole("button", { name: "Invoice approval" }).click();
  assert.deepEqual(await findAxeViolations(page), []);
  await page.getByRole("button", { name: "Begin the design" }).click();
  const frame = page.frameLocator("iframe");
  await frame.getByLabel("Who approves something").fill("chief accountant");
  assert.deepEqual(await findAxeViolations(page), []);
  await frame.getByRole("button", { name: "Send" }).click();
  await page.getByRole("article", { name: "Approval" }).first().waitFor();
  await page.getByRole("region", { name: "Sequence", exact: true }).waitFor();
  await page.getByText("skeleton", { exact: true }).waitFor();
  const open = page.getByRole("region", { name: "This plan is a skeleton. Open:" });
  await open.getByText("what must never happen", { exact: false }).waitFor();
  await page.getByRole("tab", { name: "Questions" }).click();
  await page.getByText("chief accountant", { exact: true }).waitFor();
});

test("a comment becomes an open place of the second round", async () => {
  await page.getByRole("tab", { name: "Plan" }).click();
  await page.getByRole("button", { name: "Comment on Module 1", exact: false }).click();
  await page.getByLabel("Your comment on Module 1", { exact: false }).fill("add a contract analyst");
  assert.deepEqual(await findAxeViolations(page), []);
  await page.getByRole("button", { name: "Request changes (1)" }).click();
  assert.deepEqual(await findAxeViolations(page), []);
  await page.getByRole("button", { name: "Send" }).click();
  await page.getByRole("heading", { name: "What round 2 changes" }).waitFor();
  const open = page.getByRole("region", { name: "This plan is a skeleton. Open:" });
  await open.getByText("add a contract analyst", { exact: false }).waitFor();
  await page.getByText("Round 1", { exact: true }).click();
  await page.getByText("is an earlier round").waitFor();
  assert.equal(await page.getByRole("button", { name: "Approve", exact: true }).count(), 0);
  assert.equal(await page.getByRole("button", { name: "Edit", exact: true }).count(), 0);
  await page.getByText("Round 2", { exact: true }).click();
});

test("the plan is edited in place: a mistake stands at its line, the next round has another hash", async () => {
  const { hash, text } = await world.get(`/api/plans/${run()}`);
  await page.getByRole("button", { name: "Edit Workflow strategy", exact: true }).click();
  await type(text.replace("trigger: chat", "trigger: chatt"));
  await page.getByRole("button", { name: "Save as the next round" }).click();
  await page.getByText(/error GEN007:.*chatt.*chat/).waitFor();
  assert.deepEqual(await findAxeViolations(page), []);
  await type(text.replace(/^( +workflow_description:).*/m, "$1 Pays invoices that fit their orders."));
  await page.getByRole("button", { name: "Save as the next round" }).click();
  await page.getByRole("heading", { name: "What round 3 changes" }).waitFor();
  await page.getByText("WorkflowStrategy.workflow_description", { exact: true }).waitFor();
  assert.notEqual((await world.get(`/api/plans/${run()}`)).hash, hash);
});

test("the cards of a plan and of a package are read in the inbox: nothing lies over anything", async () => {
  const inbox = await world.open("/inbox");
  const frame = inbox.frameLocator("iframe").first();
  await frame.getByRole("heading", { name: "This plan is a skeleton. Decide:" }).waitFor();
  assert.deepEqual(await overlaps(frame), []);
});

test("a skeleton is approved knowingly, and the package is written", async () => {
  await page.getByRole("button", { name: "Approve", exact: true }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByText("agents write the package").waitFor();
  await dialog.getByText("This plan is a skeleton. Open:").waitFor();
  const { hash } = await world.get(`/api/plans/${run()}`);
  await dialog.getByText(hash.slice(0, 12)).waitFor();
  assert.deepEqual(await findAxeViolations(page), []);
  await dialog.getByRole("button", { name: "Approve" }).click();
  await page.getByRole("tab", { name: "Files" }).click();
  await page.getByRole("button", { name: "Install", exact: true }).waitFor();
  await page.getByText("every agent and every way visited").waitFor();
  await page.getByRole("region", { name: "This is a skeleton" }).getByText("add a contract analyst", { exact: false }).waitFor();
  assert.deepEqual(await findAxeViolations(page), []);
  const plan = await world.get(`/api/plans/${run()}`);
  assert.equal(plan.acceptance, "accepted");
  assert.equal(plan.hash, hash);
});

test("the card of the package is read in the run, and the list names its state", async () => {
  const card = await world.open(`/runs/${run()}`);
  const frame = card.frameLocator("iframe").last();
  await frame.getByRole("button", { name: "Install", exact: true }).waitFor();
  assert.deepEqual(await overlaps(frame), []);
  const list = await world.open("/design");
  await list.getByRole("cell", { name: "package waits" }).waitFor();
});

test("the package is downloaded, installed after a look, and run", async () => {
  const [saved] = await Promise.all([
    page.waitForEvent("download"),
    page.getByRole("link", { name: "Download" }).click(),
  ]);
  assert.match(saved.suggestedFilename(), /\.zip$/);
  const design = run();
  await page.getByRole("button", { name: "Install", exact: true }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByText("a new package").waitFor();
  assert.deepEqual(await findAxeViolations(page), []);
  await dialog.getByRole("button", { name: "Install", exact: true }).click();
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

test("a form begins a design; a mistake stands at its line", async () => {
  page = await world.open("/design", { expects: [/422/] });
  await page.getByText("Fill in the form").click();
  await page.getByText("# A form: a workflow described step by step.", { exact: false }).waitFor();
  assert.deepEqual(await findAxeViolations(page), []);
  await type(NOTES.replace("clear: Filer", "clear: Filler"));
  await page.getByRole("button", { name: "Begin the design" }).click();
  await page.getByText(/error GEN007:.*Filler.*did you mean Filer/).waitFor();
  assert.deepEqual(await findAxeViolations(page), []);
  await type(NOTES);
  await page.getByRole("button", { name: "Begin the design" }).click();
  await page.getByRole("article", { name: "Reader" }).first().waitFor();
  assert.equal(await page.getByText("skeleton").count(), 0);
  await page.getByRole("button", { name: "Approve", exact: true }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Approve" }).click();
});

test("a package that differs from its plan is installed after somebody says why", async () => {
  await page.route("**/offer", async (route) => {
    const answer = await route.fetch();
    const left_out = [{ file: "tools/x.py", piece: "look_up", reason: "it imports os" }];
    await route.fulfill({ response: answer, json: { ...(await answer.json()), left_out } });
  });
  await page.getByRole("tab", { name: "Files" }).click();
  await page.getByText("The package cannot be installed yet.").waitFor();
  await page.getByText(`.weft/generated/${run()}`).waitFor();
  assert.equal(await page.getByRole("button", { name: "Install", exact: true }).count(), 0);
  const made = page.getByRole("region", { name: "What was made" });
  assert.equal(await made.getByRole("heading").first().textContent(), "Left out");
  await made.getByText("tools/x.py: look_up: it imports os").waitFor();
  await made.getByRole("row", { name: /differs.*expected: failed/ }).waitFor();
  assert.deepEqual(await findAxeViolations(page), []);
  await made.getByLabel(/GEN022/).fill("because nobody files at night");
  await made.getByRole("button", { name: "Check again" }).click();
  await made.getByText("because nobody files at night").waitFor();
  await page.getByRole("button", { name: "Install", exact: true }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Install", exact: true }).click();
  await page.waitForURL(/\/workflows\/Notes/);
  await page.getByRole("tab", { name: "Tests" }).click();
  await page.getByRole("button", { name: "Run all tests" }).click();
  await page.getByText("1 failed").waitFor();
  await page.getByText("expected: failed").waitFor();
});

test("a package is installed from its card in the inbox", async () => {
  const form = NOTES.replace("workflow: Notes", "workflow: Memos").replace(/^scenarios:[^]*/m, "");
  const { run: memos } = await world.post("/api/plans", { form });
  await world.settled(memos);
  const { hash } = await world.get(`/api/plans/${memos}`);
  await world.post(`/api/plans/${memos}/approve`, { hash });
  await world.settled(memos);
  page = await world.open("/inbox");
  await page.frameLocator("iframe").getByRole("button", { name: "Install", exact: true }).click();
  await page.locator("iframe").waitFor({ state: "detached" });
  assert.equal((await world.settled(memos)).outcome, "completed");
  assert.ok(existsSync(join(world.workspace, "workflows", "Memos", "orchestrator.json")));
  page = await world.open("/design");
  await page.getByRole("row", { name: /Memos.*installed/ }).waitFor();
});
