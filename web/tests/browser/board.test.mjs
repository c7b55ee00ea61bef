// The board: what people publish wakes agents, and what these make appears, with where it comes from.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { findAxeViolations, startWorld, WEFT } from "./harness.mjs";

const LEAD = { headline: "Rain", source: "radio", contact: "Ada", urgency: 3 };

let world;
before(async () => { world = await startWorld(); });
after(() => world.close());

test("a published artifact wakes agents, whose artifacts appear by themselves", async () => {
  const page = await world.open("/board");
  await page.getByRole("button", { name: "Publish an artifact" }).click();
  const dialog = page.getByRole("dialog", { name: "Publish on NewsDesk" });
  await dialog.getByText("Wakes reporter").waitFor();
  await dialog.getByLabel("Headline").fill(LEAD.headline);
  await dialog.getByRole("button", { name: "Publish" }).click();
  await dialog.getByLabel("Source").and(page.locator("[aria-invalid]")).waitFor();
  for (const name of ["Source", "Contact", "Urgency"]) {
    await dialog.getByLabel(name).fill(String(LEAD[name.toLowerCase()]));
  }
  await dialog.getByRole("button", { name: "Publish" }).click();
  await page.getByRole("heading", { name: "Lead" }).waitFor();
  await page.getByRole("region", { name: "Artifacts" }).getByText("Edition").waitFor();
  assert.deepEqual(await findAxeViolations(page), []);
});

test("an artifact leads back to what it was made from, and says who got it", async () => {
  await published("Snow");
  const page = await world.open("/board/NewsDesk?type=Edition");
  await page.getByRole("region", { name: "Artifacts" }).getByRole("link").first().click();
  await page.getByRole("region", { name: "Derived from" }).getByRole("link", { name: "Story" }).click();
  await page.getByRole("heading", { name: "Story" }).waitFor();
  await page.getByRole("region", { name: "Consumed by" }).getByText("editor in turn").waitFor();
  await page.getByRole("combobox", { name: "Agent" }).selectOption("reporter");
  await page.getByText("may see it").waitFor();
  await page.getByText("It does not wake reporter, which consumes no Story.").waitFor();
  await page.waitForURL(/why=reporter/);
});

test("filters are in the address: what an agent may not see is left out", async () => {
  const { artifact } = await published("Secret", { kind: "private", agents: ["editor"] });
  const page = await world.open(`/board/NewsDesk/${artifact}?text=Secret&agent=editor&why=reporter`);
  const list = page.getByRole("region", { name: "Artifacts" });
  await list.getByText("Secret").waitFor();
  await page.getByText("may not see it").waitFor();
  await page.getByRole("combobox", { name: "Seen by" }).selectOption("reporter");
  await page.getByText("Nothing fits these filters").waitFor();
  await page.getByRole("button", { name: "Clear filters" }).click();
  await list.getByText("Secret").waitFor();
});

test("agents say what they consume, and what they wait for", async () => {
  const page = await world.open("/board/NewsDesk?tab=agents");
  const row = page.getByRole("row", { name: /^editor/ });
  await row.getByRole("link", { name: "FactCheck" }).waitFor();
  await row.getByRole("link", { name: "FactCheck" }).click();
  await page.waitForURL(/type=FactCheck/);
});

test("a query of a collection finds its passages", async () => {
  const notes = join(world.folder, "notes.md");
  writeFileSync(notes, "Refunds are possible for 30 days.");
  const words = ["collection", "add", "Handbook", notes, "--workspace", world.workspace];
  assert.equal(spawnSync(WEFT, words).status, 0);
  const page = await world.open("/board/NewsDesk?tab=knowledge");
  await page.getByLabel("Query").fill("refunds");
  await page.getByRole("button", { name: "Search" }).click();
  await page.getByRole("row", { name: /notes\.md Refunds are possible/ }).waitFor();
});

test("people who are no developers see their board without agents", async () => {
  const page = await world.open("/board", { user: "guest", roles: ["end_user"] });
  await page.getByText("Nothing is on this board yet").waitFor();
  assert.equal(await page.getByRole("tab").count(), 1);
});

function published(headline, visibility = null) {
  const body = { type: "Lead", payload: { ...LEAD, headline }, visibility };
  return world.post("/api/boards/NewsDesk/artifacts", body);
}
