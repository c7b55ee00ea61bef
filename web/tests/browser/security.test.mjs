// What the page is sent and what it may do: the policy of the page, and what end users never get.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { ROOT, startWorld } from "./harness.mjs";

const APP = "app";
const RECORD = `
import asyncio, sys
from pathlib import Path
from support.canary_play import agree, agree_and_sign, record

for steps in ((), (agree,), (agree_and_sign,)):
    print(asyncio.run(record(Path(sys.argv[1]), *steps)))
`;

let world;
let runs;
before(async () => {
  world = await startWorld();
  await world.stopServer();
  runs = recordCanaries();
  await world.startServer();
  await world.post("/api/apps", { app: APP });
});
after(() => world.close());

test("every answer of the page has the policy, and no script is in the document", async () => {
  const page = await world.open("/");
  const answers = [];
  page.on("response", (response) => answers.push(response));
  await page.goto("/settings");
  await page.getByRole("heading", { name: "Settings", level: 1 }).waitFor();
  const files = answers.filter((answer) => !new URL(answer.url()).pathname.startsWith("/api/"));
  assert.ok(files.length > 4);
  for (const file of files) {
    const policy = (await file.headerValue("content-security-policy")) ?? "";
    assert.match(policy, /default-src 'none'; script-src 'self'; style-src 'self';/, file.url());
    assert.doesNotMatch(policy, /unsafe/, file.url());
  }
  const html = await (await fetch(world.url)).text();
  assert.deepEqual(html.match(/<script(?![^>]*\ssrc=)|<style|\s(style|on\w+)=/g), null);
});

test("no byte that an end user's page gets has a canary", async () => {
  const bytes = await readScreens("ada", ["end_user"], [
    "/", "/inbox", "/runs", "/workflows", "/workflows/NewsDesk", "/board", "/settings",
    ...runs.map((run) => `/runs/${run}`), `/runs/${runs[2]}?panel=context&show=prompt&at=30`,
  ]);
  for (const said of ["my private text", "One moment.", "Agreed?"]) assert.ok(bytes.includes(said), said);
  assert.deepEqual(bytes.match(/.{0,80}canary.{0,40}/g), null);
});

test("the same run shows a developer what end users do not get", async () => {
  const bytes = await readScreens("dora", ["developer"], [`/runs/${runs[2]}`]);
  for (const canary of ["canary-argument", "canary-result", "canary-written"]) {
    assert.ok(bytes.includes(canary), canary);
  }
});

/** Record runs of "ada" with canaries in everything that is not for end users. */
function recordCanaries() {
  const done = spawnSync(join(ROOT, ".venv/bin/python"), ["-c", RECORD, world.workspace], {
    env: { ...process.env, PYTHONPATH: join(ROOT, "tests") },
    encoding: "utf8",
  });
  assert.equal(done.status, 0, done.stderr);
  return done.stdout.trim().split("\n");
}

/** Return all that the page of a person receives on some screens, over HTTP, sockets and streams. */
async function readScreens(user, roles, paths) {
  const { key } = await world.post("/api/keys", { app: APP, user, roles });
  const context = await world.newContext();
  await context.request.post("/api/session", { data: { token: key } });
  const page = await world.openIn(context, "/");
  const bytes = [];
  const bodies = [];
  page.on("response", (response) => {
    // A stream has no end; its events are read below.
    if (!/event-stream/.test(response.headers()["content-type"] ?? "")) {
      bodies.push(response.text().then((text) => bytes.push(text), () => undefined));
    }
  });
  page.on("websocket", (socket) => {
    socket.on("framereceived", ({ payload }) => bytes.push(String(payload)));
  });
  const tools = await context.newCDPSession(page);
  await tools.send("Network.enable");
  tools.on("Network.eventSourceMessageReceived", ({ data }) => bytes.push(data));
  for (const path of paths) {
    await page.goto(path);
    await page.getByRole("navigation", { name: "Screens" }).waitFor();
    await page.waitForLoadState("networkidle");
    bytes.push(await page.content());
  }
  await Promise.all(bodies);
  return bytes.join("\n");
}
