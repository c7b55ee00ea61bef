// Every screen and pane, in both themes: axe finds nothing, and the console stays empty.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { openScene, startScenes } from "../scenes.mjs";
import { findAxeViolations } from "./harness.mjs";

let world;
let scenes;
before(async () => { ({ world, scenes } = await startScenes()); });
after(() => world?.close());

test("no screen has a violation of WCAG 2.2 AA, in either theme", async () => {
  const violations = {};
  for (const scene of scenes) {
    const page = await openScene(world, scene);
    const found = await findAxeViolations(page);
    await page.emulateMedia({ colorScheme: "dark" });
    found.push(...(await findAxeViolations(page, ["color-contrast"])));
    if (found.length) violations[scene.name] = found;
    await page.close();
  }
  assert.deepEqual(violations, {});
});

test("a page of another version than its server offers to be loaded again", async () => {
  const page = await openScene(world, scenes.find(({ name }) => name === "settings"));
  const me = await world.get("/api/me");
  await page.route("**/api/me", (route) => route.fulfill({ json: { ...me, version: "99.0.0" } }));
  await page.context().setOffline(true);
  await page.context().setOffline(false);
  await page.getByText("The server has another version than this page.").waitFor();
  await page.unroute("**/api/me");
  await page.getByRole("button", { name: "Reload the page" }).click();
  await page.getByRole("heading", { name: "Settings", level: 1 }).waitFor();
  assert.equal(await page.getByText("another version").count(), 0);
});
