// What is around the screens: signing in and out, the keys, the theme.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { findAxeViolations, startWorld } from "./harness.mjs";

let world;
before(async () => { world = await startWorld(); });
after(() => world.close());

test("a person signs in with an API key, and logs out", async () => {
  const context = await world.newContext();
  const page = await world.openIn(context, "/runs", [/401/]);
  await page.getByRole("heading", { name: "Sign in to Weft", level: 1 }).waitFor();
  const box = page.getByLabel("API key");
  assert.equal(await box.getAttribute("type"), "password");
  assert.deepEqual(await findAxeViolations(page), []);

  await box.fill("not-a-key");
  await page.keyboard.press("Enter");
  await page.getByRole("alert").getByText("HTTP401").waitFor();
  assert.deepEqual(await findAxeViolations(page), []);

  const key = await world.keyOf("sara", ["end_user"]);
  await box.fill(` ${key} `);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("heading", { name: "Runs", level: 1 }).waitFor();
  assert.equal((await page.evaluate(() => fetch("/api/me").then((answer) => answer.json()))).user, "sara");
  assert.ok(!JSON.stringify(await context.storageState()).includes(key), "the key is not kept");

  await page.keyboard.press("Control+k");
  await page.getByRole("combobox", { name: "Search" }).fill("log out");
  await page.getByRole("option", { name: /^Log out/ }).click();
  await page.getByRole("heading", { name: "Sign in to Weft" }).waitFor();
  assert.equal(await page.evaluate(() => fetch("/api/me").then(({ status }) => status)), 401);
  assert.deepEqual(await context.cookies(), []);
  await page.close();
});

test("a question mark lists the keys of the screen", async () => {
  const { run } = await world.post("/api/runs", { workflow: "HelloWorld", message: "Hi" }, await world.keyOf());
  await world.settled(run);
  const page = await world.open(`/runs/${run}`);
  await page.getByRole("log").waitFor();
  await page.getByRole("heading", { name: "HelloWorld", level: 1 }).waitFor();
  await page.keyboard.press("?");
  const help = page.getByRole("dialog", { name: "Keys" });
  for (const [key, label] of [
    ["j", "Next event"], ["[", "Run before this one"], ["]", "Run after this one"],
    ["Space", "Play the run, or pause"], ["?", "Show the keys"],
  ]) {
    await help.locator("dt").getByText(key, { exact: true }).waitFor();
    await help.getByText(label, { exact: true }).waitFor();
  }
  assert.deepEqual(await findAxeViolations(page), []);
  await page.keyboard.press("Escape");
  await help.waitFor({ state: "hidden" });
  await page.close();
});

test("the theme button goes from the system's theme to light and dark, and the choice is kept", async () => {
  const page = await world.open("/settings", { theme: "dark" });
  const button = page.getByRole("button", { name: /^Theme/ });
  const paper = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  await button.and(page.getByTitle("Theme: system")).waitFor();
  const dark = await paper();
  await button.click();
  await button.and(page.getByTitle("Theme: light")).waitFor();
  const light = await paper();
  assert.notEqual(light, dark);
  await page.reload();
  await button.and(page.getByTitle("Theme: light")).waitFor();
  assert.equal(await paper(), light);
  await button.click();
  await button.and(page.getByTitle("Theme: dark")).waitFor();
  assert.equal(await paper(), dark);
  await button.click();
  await button.and(page.getByTitle("Theme: system")).waitFor();
  await page.emulateMedia({ colorScheme: "light" });
  assert.equal(await paper(), light);
  await page.close();
});
