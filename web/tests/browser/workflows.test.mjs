// Workflows: their pictures, a mistake in a file and its fix, versions, packages that are imported.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { findAxeViolations, ROOT, startWorld } from "./harness.mjs";

const NAME = "CustomerSupportRouter";

let world;
before(async () => {
  world = await startWorld();
});
after(() => world.close());

const agentsFile = () => readFileSync(join(world.workspace, "workflows", NAME, "agents.json"), "utf8");

/** Type a text over all of the open file. */
async function type(page, text) {
  await page.getByRole("textbox", { name: /\.json$/ }).click();
  await page.keyboard.press("Control+a");
  await page.keyboard.insertText(text);
  // Only the lines that are seen are in the document.
  await page.keyboard.press("Control+Home");
}

/** A zip file of HelloWorld that is whole, but hands over to nobody. */
function brokenPackage() {
  const code = `
import sys
from pathlib import Path
from weft.packages.archive.exporting import make_manifest, pack_files
from weft.packages.archive.staging import staged_folder
from weft.packages.folder import read_files
from weft.packages.reader import read_package
files = dict(read_files(Path(sys.argv[1])).files)
files["handoffs.json"] = files["handoffs.json"].replace(b"GreeterAgent", b"Nobody")
with staged_folder(files, "HelloWorld") as folder:
    manifest = make_manifest("HelloWorld", read_package(folder).digest, files)
sys.stdout.buffer.write(pack_files(manifest, files))
`;
  const folder = join(ROOT, "workflows/HelloWorld");
  const made = spawnSync(join(ROOT, ".venv/bin/python"), ["-c", code, folder]);
  assert.equal(made.status, 0, String(made.stderr));
  return [...made.stdout];
}

test("a workflow is shown as a list entry, a graph and a sequence", async () => {
  const page = await world.open("/workflows");
  await page.getByRole("link", { name: NAME }).click();
  await page.getByRole("button", { name: "Start" }).waitFor();
  assert.deepEqual(await findAxeViolations(page), []);
  await page.getByRole("tab", { name: "Graph" }).click();
  await page.getByRole("button", { name: /RouterAgent/ }).click();
  await page.getByText("You are the first contact of the support team").waitFor();
  await page.waitForURL(/tab=graph.*node=RouterAgent/);
  assert.deepEqual(await findAxeViolations(page), []);
  await page.reload();
  await page.getByText("You are the first contact of the support team").waitFor();
  await page.getByRole("tab", { name: "Sequence" }).click();
  await page.getByText("a chat is opened").waitFor();
  assert.deepEqual(await findAxeViolations(page), []);
});

test("a start form begins a run of a flow", async () => {
  const page = await world.open("/workflows/OrderProcessing");
  await page.getByRole("textbox", { name: /^Order/ }).fill("B-7");
  await page.getByRole("button", { name: "Start" }).click();
  await page.waitForURL(/\/runs\//);
  const run = page.url().split("/runs/")[1].split("?")[0];
  assert.equal((await world.get(`/api/runs/${run}/state`)).variables.order, "B-7");
});

test("a mistake is shown at its line while it is typed, and a broken file is not saved", async () => {
  const page = await world.open(`/workflows/${NAME}?tab=files&file=agents.json`, {
    expects: [/422/],
  });
  const saved = agentsFile();
  await type(page, saved.replaceAll("{product_name}", "{product_nam}"));
  await page.getByText(/error NAME001: the prompt of RouterAgent/).waitFor();
  assert.deepEqual(await findAxeViolations(page), []);
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByRole("alert").getByText(/nothing was changed/).waitFor();
  assert.equal(agentsFile(), saved);
  await page.getByRole("button", { name: "Save with errors" }).click();
  await page.getByRole("tab", { name: /Findings \(/ }).click();
  await page.getByText("Why it matters").first().click();
  assert.deepEqual(await findAxeViolations(page), []);
  await page.getByRole("link", { name: /^agents.json:\d+/ }).first().click();
  await type(page, saved);
  await page.getByText("No findings in this file").waitFor();
  await page.keyboard.press("Control+s");
  await page.getByRole("tab", { name: "Findings", exact: true }).waitFor();
  assert.equal(agentsFile(), saved);
});

test("a run is saved as a test, and a difference leads to its line", async () => {
  const run = await world.post("/api/runs", { workflow: NAME, message: "It does not sync", model: "sample" });
  const page = await world.open(`/runs/${run.run}`);
  await page.getByText("waiting for you").waitFor();
  await page.getByRole("button", { name: "More of this run" }).click();
  await page.getByRole("menuitem", { name: "Save as test" }).click();
  await page.getByRole("textbox", { name: "Name" }).fill("sync");
  assert.deepEqual(await findAxeViolations(page), []);
  await page.getByRole("dialog").getByRole("button", { name: "Save" }).click();
  await page.waitForURL(/tab=tests/);

  const path = `/api/workflows/${NAME}/files/tests/sync.yaml`;
  const { content, digest } = await world.get(path);
  await world.call("PUT", path, { content: content.replace("outcome: waiting", "outcome: failed"), digest });
  await page.getByRole("button", { name: "Run all tests" }).click();
  await page.getByText("1 failed").waitFor();
  const differing = page.getByRole("region", { name: "What differs in sync" });
  await differing.getByText("expected: failed").waitFor();
  assert.deepEqual(await findAxeViolations(page), []);
  await differing.getByRole("link", { name: /^tests\/sync.yaml:\d+/ }).click();
  await page.getByRole("textbox", { name: "tests/sync.yaml" }).waitFor();

  await world.call("PUT", path, { content, digest: (await world.get(path)).digest });
  await page.getByRole("tab", { name: "Tests" }).click();
  await page.getByRole("button", { name: "Run sync" }).click();
  await page.getByText("1 test passed").waitFor();
});

test("an edit of an old file is refused, and the present one can be read", async () => {
  const page = await world.open(`/workflows/${NAME}?tab=files&file=agents.json`, {
    expects: [/409/],
  });
  await type(page, agentsFile().replace("You solve technical problems", "You repair"));
  const file = await world.get(`/api/workflows/${NAME}/files/agents.json`);
  const content = file.content.replace("You solve technical problems", "You mend");
  await world.call("PUT", `/api/workflows/${NAME}/files/agents.json`, { content, digest: file.digest });
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByRole("button", { name: "Read the present file" }).first().click();
  await page.getByText("You mend").waitFor();
});

test("a safe fix is previewed and applied, and a former version is brought back", async () => {
  const path = `/api/workflows/${NAME}/files/handoffs.json`;
  const file = await world.get(path);
  const content = file.content.replace("RouterAgent", "routerAgent");
  await world.call("PUT", `${path}?force=true`, { content, digest: file.digest });
  const page = await world.open(`/workflows/${NAME}?tab=findings`);
  await page.getByRole("button", { name: "Preview the fix" }).first().click();
  const dialog = page.getByRole("dialog");
  await dialog.getByText(/^\+.*RouterAgent/).first().waitFor();
  assert.deepEqual(await findAxeViolations(page), []);
  await dialog.getByRole("button", { name: "Apply" }).click();
  await dialog.waitFor({ state: "detached" });
  await page.getByRole("heading", { name: "No findings" }).waitFor();
  assert.equal((await world.get(path)).content, file.content);

  await page.getByRole("tab", { name: "Versions" }).click();
  await page.getByRole("button", { name: "Compare" }).last().click();
  await dialog.getByText(/^-.*You mend/).first().waitFor();
  await dialog.getByRole("button", { name: "Roll back" }).click();
  await page.getByText("rolled back").waitFor();
  assert.match(agentsFile(), /You solve technical problems/);
  assert.deepEqual(await findAxeViolations(page), []);
});

test("a component is previewed in the sandbox", async () => {
  const page = await world.open(`/workflows/${NAME}?tab=files&file=tools/ClarificationRequest.jsx`);
  await page.getByText("Preview", { exact: true }).click();
  const frame = page.frameLocator("iframe");
  await frame.getByText("Likely answers").first().click();
  await frame.getByRole("button").first().click();
  await page.getByText(/It answered/).waitFor();
});

test("a dropped package is imported after a look, and a broken one is refused", async () => {
  const page = await world.open("/workflows", { expects: [/422/] });
  const headers = { authorization: `Bearer ${await world.keyOf()}` };
  const answer = await fetch(`${world.url}/api/packages/HelloWorld/zip`, { headers });
  rmSync(join(world.workspace, "workflows", "HelloWorld"), { recursive: true });
  await drop(page, [...new Uint8Array(await answer.arrayBuffer())]);
  const dialog = page.getByRole("dialog");
  await dialog.getByText("a new package").waitFor();
  assert.deepEqual(await findAxeViolations(page), []);
  await dialog.getByRole("button", { name: "Import" }).click();
  await page.waitForURL(/\/workflows\/HelloWorld/);

  await page.goto("/workflows");
  await drop(page, brokenPackage());
  await dialog.getByRole("alert").getByText("NAME001").first().waitFor();
  assert.ok(await dialog.getByRole("button", { name: "Import" }).isDisabled());
});

async function drop(page, bytes) {
  await page.getByRole("heading", { name: "Workflows" }).waitFor();
  await page.evaluate((content) => {
    const data = new DataTransfer();
    data.items.add(new File([new Uint8Array(content)], "package.zip", { type: "application/zip" }));
    const target = document.querySelector("h1");
    for (const type of ["dragover", "drop"]) {
      target.dispatchEvent(new DragEvent(type, { dataTransfer: data, bubbles: true, cancelable: true }));
    }
  }, bytes);
}

test("an end user sees what can be started, and nothing of how it is made", async () => {
  const page = await world.open("/workflows", { user: "eve", roles: ["end_user"] });
  await page.getByRole("link", { name: NAME }).click();
  await page.getByRole("button", { name: "Start" }).waitFor();
  assert.equal(await page.getByRole("tab").count(), 1);
});
