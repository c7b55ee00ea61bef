// The first five minutes without a key, and answers from the inbox.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { startWorld } from "./harness.mjs";

let began;
let world;

before(async () => {
  began = Date.now();
  world = await startWorld();
});
after(() => world.close());

test("a new person plays a recorded run, forks it, changes a value and answers an agent", async () => {
  const page = await world.openIn(await world.newContext(), world.page);
  await page.getByRole("button", { name: "Play the recorded run" }).click();
  await page.getByRole("button", { name: "Pause" }).waitFor();
  await page.waitForFunction(() => Number(new URLSearchParams(location.search).get("at")) > 3);
  assert.ok(Date.now() - began < 60_000, "a replay plays within a minute and one click");

  await page.getByRole("button", { name: "Pause" }).click();
  await page.getByRole("button", { name: "Fork", exact: true }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Change a variable").selectOption("current_domain");
  await dialog.getByLabel("current_domain", { exact: true }).selectOption("tech");
  await dialog.getByLabel("Model").selectOption("sample");
  const recorded = new URL(page.url()).pathname;
  await dialog.getByRole("button", { name: "Fork" }).click();
  await page.waitForFunction((path) => location.pathname !== path, recorded);
  await world.settled(new URL(page.url()).pathname.split("/").at(-1));

  await page.getByRole("link", { name: "Home" }).click();
  await page.getByText("First steps · 3 of 5").waitFor();
  await page.getByRole("button", { name: "Start HelloWorld" }).click();
  await dialog.getByRole("button", { name: "Start" }).click();
  await page.waitForURL((url) => url.pathname.startsWith("/runs/"));
  await page.getByRole("link", { name: "Inbox" }).click();
  const card = page.getByRole("article").filter({ hasText: "GreeterAgent asks" });
  await card.getByRole("textbox", { name: "Your message" }).fill("Ada");
  await card.getByRole("button", { name: "Send" }).click();
  await page.getByText("Done: a message to GreeterAgent").waitFor();
  await page.getByRole("link", { name: "Home" }).click();
  await page.getByText("First steps · 4 of 5").waitFor();
  await page.reload();
  await page.getByText("First steps · 4 of 5").waitFor();
  await page.getByRole("button", { name: "Hide" }).click();
  await page.reload();
  await page.getByText("Recent runs").waitFor();
  assert.equal(await page.getByText("First steps").count(), 0);
});

test("an end user finds only own runs, and can start a workflow without choosing a model", async () => {
  const page = await world.open("/", { user: "eva", roles: ["end_user"] });
  await page.getByRole("heading", { name: "Welcome, eva" }).waitFor();
  await page.getByText("Nothing has run yet.").waitFor();
  assert.equal(await page.getByText("First steps").count(), 0);
  await page.getByRole("button", { name: "Start HelloWorld" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByRole("button", { name: "Start" }).waitFor();
  assert.equal(await dialog.getByRole("combobox").count(), 0);
  await dialog.getByRole("button", { name: "Start" }).click();
  await page.waitForURL((url) => url.pathname.startsWith("/runs/"));
  await page.getByRole("link", { name: "Home" }).click();
  await page.getByRole("link", { name: "GreeterAgent waits for your message" }).waitFor();
  assert.equal(await page.getByRole("link", { name: /^Run …/ }).count(), 1);
});

test("a manager answers a question of another person's run in the inbox of a phone", async () => {
  const { run } = await world.post("/api/runs", {
    workflow: "OrderProcessing",
    values: { order: "B-7", amount: 900 },
  });
  await world.settled(run);
  const page = await world.open("/inbox", { user: "mia", roles: ["end_user", "manager"], phone: true });
  const card = page.getByRole("article", { name: "Send order B-7 over 900?" });
  await card.getByText("waiting for you").waitFor();
  await card.getByText("Approve").click();
  await card.getByRole("button", { name: "Send" }).click();
  await page.getByText("Done: Send order B-7 over 900?").waitFor();
  await page.getByText("Nothing waits for you").waitFor();
  const row = await world.settled(run);
  assert.equal(row.outcome, "completed");
});
