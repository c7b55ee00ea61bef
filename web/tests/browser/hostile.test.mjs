// What attacks the page, the network and the person: components of packages, and texts of models.
//
// A file of tests/hostile has a function `attack`, which returns "open: ..." if it gets through, and
// perhaps a component `Shown`. What begins with `fails-` must be replaced by the form.

import assert from "node:assert/strict";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import { after, before, test } from "node:test";
import { setTimeout } from "node:timers/promises";
import { fileURLToPath } from "node:url";

import { startWorld } from "./harness.mjs";

const FOLDER = fileURLToPath(new URL("../hostile/", import.meta.url));
const NAMES = readdirSync(FOLDER).map((file) => file.replace(".jsx", ""));
/** It stops all frames of its page, which share a process. */
const ALONE = "fails-loop";
const FRAMES_OF_A_PAGE = 4;
const PAGES_AT_ONCE = 2;
const PATIENCE_MS = 20_000;
const FALLBACK = "This question has a card of its own, but";

let world;
let collector;
const sources = new Map();

before(async () => {
  world = await startWorld({ model: "scripted" });
  world.model.decide = ({ messages, tools = [] }) => {
    if (!tools.some((tool) => tool.function.name === "request_clarification")) return markdown(collector.url);
    const question = messages.findLast(({ role }) => role === "user").content;
    return { calls: [{ tool: "request_clarification", arguments: { question, options: [] } }] };
  };
  collector = await startCollector();
});
after(async () => {
  await collector?.close();
  await world.close();
});

test("no component gets out of its frame", async () => {
  const others = NAMES.filter((name) => name !== ALONE);
  const pages = [[ALONE]];
  while (others.length) pages.push(others.splice(0, FRAMES_OF_A_PAGE));
  const waiting = pages.entries();
  const verdicts = {};
  await Promise.all(
    Array.from({ length: PAGES_AT_ONCE }, async () => {
      for (const [index, names] of waiting) Object.assign(verdicts, await attackPage(`guest${index}`, names));
    }),
  );
  assert.deepEqual(Object.keys(verdicts).sort(), NAMES.toSorted());
  for (const [name, verdict] of Object.entries(verdicts)) {
    assert.doesNotMatch(verdict, /^open/, name);
    assert.notEqual(verdict, "nothing", name);
    if (name.startsWith("fails-")) assert.equal(verdict, "form", name);
  }
  await onlyControlHits(await world.open("/"));
});

test("Markdown of a model loads nothing and runs nothing", async () => {
  const { run } = await world.post("/api/runs", { workflow: "HelloWorld", message: "Hi" });
  await world.settled(run);
  const page = await world.open(`/runs/${run}`);
  const log = page.getByRole("log");
  await log.getByText("the end of the text").waitFor();
  assert.equal(await log.locator("img, script, iframe, object, svg [href], style, form, base, meta").count(), 0);
  const links = await log.locator("a[href^=http]").evaluateAll((found) =>
    found.map(({ href, rel, target }) => [new URL(href).pathname, rel, target]),
  );
  assert.equal(links.length, 2);
  for (const [path, rel, target] of links) {
    assert.match(path, /^\/(link|image)/);
    assert.match(rel, /noreferrer/);
    assert.equal(target, "_blank");
  }
  assert.equal(await page.evaluate(() => window.wasRun), undefined);
  await onlyControlHits(page);
});

/** The collector works, and nothing else has reached it. */
async function onlyControlHits(page) {
  const free = await page.context().newPage();
  await free.evaluate((url) => fetch(`${url}/control`, { mode: "no-cors" }), collector.url);
  assert.deepEqual(collector.hits.splice(0), ["/control"]);
}

function markdown(url) {
  return [
    `![an image](${url}/image.png) <img src="${url}/html.png" onerror="window.wasRun = 1">`,
    `[a link](${url}/link) [code](javascript:window.wasRun=1) <a href="javascript:window.wasRun=1">x</a>`,
    `<script>window.wasRun = 1</script><iframe src="${url}/frame"></iframe><style>@import "${url}/css";</style>`,
    `<svg><image href="${url}/svg" onload="window.wasRun = 1"/></svg><base href="${url}/"><form action="${url}">`,
    `<link rel="prefetch" href="${url}/prefetch"><meta http-equiv="refresh" content="0; url=${url}/refresh">`,
    `[reference]: ${url}/reference`,
    "the end of the text",
  ].join("\n\n");
}

/** Open the inbox of a person whom these components are shown; return what became of each. */
async function attackPage(user, names) {
  const key = await world.keyOf(user, ["end_user"]);
  for (const name of names) {
    const body = { workflow: "CustomerSupportRouter", message: name };
    const { run } = await world.post("/api/runs", body, key);
    sources.set(run, sourceOf(name));
    await world.settled(run);
  }
  const page = await world.open("/runs", { user, roles: ["end_user"], expects: [/./] });
  const context = page.context();
  const events = [];
  for (const name of ["dialog", "download", "popup"]) page.on(name, () => events.push(name));
  await page.route("**/api/runs/*/components/*", (route) => {
    const [, run] = route.request().url().match(/runs\/([^/]+)/);
    return route.fulfill({ json: { name: "ClarificationRequest", source: sources.get(run) } });
  });
  await page.getByRole("link", { name: /^Inbox/ }).click();
  const found = await Promise.all(names.map((name) => verdictOf(page, name)));
  const asked = performance.now();
  await page.getByRole("heading", { name: "Inbox", level: 1 }).click();
  assert.ok(performance.now() - asked < 2000, `${names}: the page does not react`);
  assert.equal(new URL(page.url()).pathname, "/inbox", String(names));
  assert.deepEqual(events, [], String(names));
  assert.equal(context.pages().length, 1, String(names));
  await page.close();
  return Object.fromEntries(found);
}

/** What the component says of its attack, `form` if the form has taken its place. */
async function verdictOf(page, name) {
  const card = page.getByRole("article", { name, exact: true });
  const end = Date.now() + PATIENCE_MS;
  while (Date.now() < end) {
    if (await card.getByText(FALLBACK).isVisible()) {
      await card.getByRole("button", { name: "Send" }).waitFor();
      return [name, "form"];
    }
    const said = name.startsWith("fails-") ? "" : await textOf(card);
    if (said) return [name, said];
    await setTimeout(100);
  }
  return [name, "nothing"];
}

/** The frame may be gone, or its process be busy. */
function textOf(card) {
  const output = card.locator("iframe").contentFrame().locator("output");
  return output.textContent({ timeout: 500 }).catch(() => "");
}

function sourceOf(name) {
  const targets = { collector: collector.url, stun: collector.stun, server: world.url };
  const source = readFileSync(`${FOLDER}${name}.jsx`, "utf8");
  const shown = source.includes("const Shown") ? "<Shown />" : "<output ref={output} />";
  // What is said is written past React, which some of them break.
  return `${source}
import { useEffect as useAttack, useRef as useOutput } from "react";

export default function Hostile(props) {
  const output = useOutput();
  useAttack(() => {
    const tried = Promise.resolve().then(() => attack(${JSON.stringify(targets)}, props));
    const say = (text) => (output.current.textContent = text);
    tried.then((text) => say(String(text)), (error) => say("blocked: " + error));
  }, []);
  return ${shown};
}
`;
}

/** A server that notes what arrives, over HTTP and as datagrams. */
async function startCollector() {
  const hits = [];
  const server = createServer((request, response) => {
    hits.push(request.url);
    response.writeHead(200, { "access-control-allow-origin": "*" }).end("ok");
  });
  server.on("upgrade", (request, socket) => {
    hits.push(request.url);
    socket.destroy();
  });
  const packets = createSocket("udp4");
  packets.on("message", () => hits.push("stun"));
  server.listen(0, "127.0.0.1");
  packets.bind(0, "127.0.0.1");
  await Promise.all([once(server, "listening"), once(packets, "listening")]);
  return {
    hits,
    url: `http://127.0.0.1:${server.address().port}`,
    stun: `stun:127.0.0.1:${packets.address().port}`,
    async close() {
      packets.close();
      server.closeAllConnections();
      server.close();
    },
  };
}
