// What browser tests share: a real `weft serve`, a model that says what a test wants, and Chromium.
//
//   import { startWorld } from "./harness.mjs";
//
//   let world;
//   before(async () => { world = await startWorld({ model: "scripted" }); });
//   after(() => world.close());              // fails if a page had a console error
//
//   test("the agent answers", async () => {
//     world.model.say("Hello!", { calls: [{ tool: "lookup", arguments: { order: 7 } }] });
//     const { run } = await world.post("/api/runs", { workflow: "HelloWorld", message: "Hi" });
//     const page = await world.open(`/runs/${run}`);          // a Page of playwright, signed in
//     await page.getByText("Hello!").waitFor();
//     assert.deepEqual(await findAxeViolations(page), []);
//   });
//
// The workspace is that of `weft init`, with the `files` of the options added. Models are `sample`
// (default) or `scripted`; its replies are queued by `say`, and `decide` answers when the queue is
// empty. `open` takes { user, roles, theme, phone, expects }: `expects` are patterns of console
// errors that belong to the test. `restart` stops the server and starts it on the same port;
// sessions survive it. Waits must be functions: our policy forbids text (`waitForFunction(() => ..)`).
// Run all tests with `make test`, some with `node tests/browser/run.mjs NAME...`. The built page is
// tested: run `make web` after a change.

import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

import { chromium } from "playwright-core";

import { startModel } from "./model.mjs";

export const ROOT = fileURLToPath(new URL("../../../", import.meta.url));
export const WEFT = join(ROOT, ".venv/bin/weft");
const AXE = join(ROOT, "web/node_modules/axe-core/axe.min.js");
const ALL_ROLES = ["administrator", "developer", "end_user", "operator"];
const FLAGS = [
  "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
  "--disable-background-networking", "--disable-component-update", "--disable-sync",
];
const DESK = { width: 1440, height: 900 };
const PHONE = { width: 390, height: 844 };
const STOP_SECONDS = 15;

/** Return the program of Chromium, or null. */
export function findChromium() {
  const inPath = (process.env.PATH ?? "").split(":").map((folder) => join(folder, "chromium"));
  const named = process.env.WEFT_CHROMIUM;
  return (named ? [named] : ["/usr/bin/chromium", ...inPath]).find((path) => existsSync(path)) ?? null;
}

/** Start a server on a new workspace, and a browser. */
export async function startWorld(options = {}) {
  if (!existsSync(join(ROOT, "src/weft/page/index.html"))) {
    throw new Error("The page is not built; run make web");
  }
  const world = new World(options);
  try {
    await world.start();
  } catch (error) {
    await world.close();
    throw error;
  }
  return world;
}

class World {
  #contexts = new Map();
  #browser = null;
  #keys = new Map();
  #pages = [];
  #server = null;
  #settings;

  constructor({ model = "sample", files = {}, settings = {} }) {
    this.folder = mkdtempSync(join(tmpdir(), "weft-browser-"));
    this.workspace = join(this.folder, "demo");
    this.#settings = { WEFT_MODEL: model, ...settings };
    this.files = files;
    /** The scripted model, if there is one. */
    this.model = null;
    this.url = "";
    /** What the server has printed on stderr. */
    this.log = "";
  }

  async start() {
    if (this.#settings.WEFT_MODEL === "scripted") {
      this.model = await startModel();
      this.#settings.WEFT_MODEL = "openai:scripted";
      this.#settings.OPENAI_BASE_URL = this.model.url;
      this.#settings.OPENAI_API_KEY = "not-a-key";
    }
    const made = spawnSync(WEFT, ["init", this.workspace], { env: this.#environment() });
    if (made.status !== 0) throw new Error(`weft init: ${made.stderr}`);
    for (const [path, content] of Object.entries(this.files)) {
      const file = join(this.workspace, path);
      mkdirSync(dirname(file), { recursive: true });
      writeFileSync(file, content);
    }
    await this.startServer();
    this.#browser = await chromium.launch({ executablePath: findChromium(), args: FLAGS });
  }

  /** Start the server; the next time on the same port. */
  async startServer() {
    const port = this.url ? new URL(this.url).port : "0";
    const words = ["serve", "--workspace", this.workspace, "--port", port, "--no-open", "--json"];
    const server = spawn(WEFT, words, { env: this.#environment() });
    this.#server = server;
    process.once("exit", () => server.kill("SIGKILL"));
    server.stderr.on("data", (data) => { this.log += data; });
    const lines = createInterface({ input: server.stdout });
    const first = await Promise.race([once(lines, "line"), once(server, "exit")]);
    if (typeof first[0] !== "string") throw new Error(`weft serve ended: ${this.log}`);
    const { ready } = JSON.parse(first[0]);
    this.url = ready.url;
    /** The address that `weft serve` prints for a person, with a one-time token. */
    this.page = ready.page;
    const file = join(this.workspace, ".weft", `server-${new URL(ready.url).port}.json`);
    this.#keys.set("process", JSON.parse(readFileSync(file, "utf8")).key);
  }

  /** Stop the server: `SIGTERM` ends what is under way, `SIGKILL` does not. */
  async stopServer(signal = "SIGTERM") {
    const server = this.#server;
    if (!server || server.exitCode !== null || server.signalCode !== null) return;
    const ended = once(server, "exit");
    server.kill(signal);
    const late = setTimeout(() => server.kill("SIGKILL"), STOP_SECONDS * 1000);
    await ended;
    clearTimeout(late);
  }

  async restart(signal = "SIGTERM") {
    await this.stopServer(signal);
    await this.startServer();
  }

  /** Send a request with all rights, or with a key; return the JSON of the answer. */
  async call(method, path, body, key = this.#keys.get("process")) {
    const headers = { authorization: `Bearer ${key}` };
    let content = body;
    if (body !== undefined && !(body instanceof Uint8Array)) {
      headers["content-type"] = "application/json";
      content = JSON.stringify(body);
    }
    const answer = await fetch(this.url + path, { method, headers, body: content });
    const data = await answer.json();
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${JSON.stringify(data)}`);
    return data;
  }

  get(path, key) {
    return this.call("GET", path, undefined, key);
  }

  post(path, body, key) {
    return this.call("POST", path, body, key);
  }

  /** Return a run when it waits or has ended. */
  async settled(run) {
    const end = Date.now() + 30_000;
    for (;;) {
      const row = await this.get(`/api/runs/${run}`);
      if (row.status !== "running") return row;
      if (Date.now() > end) throw new Error(`the run is still running: ${JSON.stringify(row)}`);
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }

  /** Return an API key of a user with these roles. */
  async keyOf(user = "me", roles = ALL_ROLES) {
    const name = JSON.stringify([user, roles]);
    if (!this.#keys.has(name)) {
      const made = await this.post("/api/keys", { app: "local", user, roles });
      this.#keys.set(name, made.key);
    }
    return this.#keys.get(name);
  }

  /** Return a browser context in which nobody is signed in. */
  newContext({ theme = "light", phone = false } = {}) {
    return this.#browser.newContext({
      baseURL: this.url,
      viewport: phone ? PHONE : DESK,
      hasTouch: phone,
      colorScheme: theme,
      reducedMotion: "reduce",
    });
  }

  /** Open an address of the page, signed in; pages of the same person share a session. */
  async open(path = "/", { user = "me", roles = ALL_ROLES, theme, phone, expects } = {}) {
    const name = JSON.stringify([user, roles, theme, phone]);
    if (!this.#contexts.has(name)) {
      const context = await this.newContext({ theme, phone });
      const data = { token: await this.keyOf(user, roles) };
      const answer = await context.request.post("/api/session", { data });
      if (!answer.ok()) throw new Error(`nobody is signed in: ${await answer.text()}`);
      this.#contexts.set(name, context);
    }
    return this.openIn(this.#contexts.get(name), path, expects);
  }

  /** Open an address in a context; what goes wrong on the page is noted. */
  async openIn(context, path, expects = []) {
    const page = await context.newPage();
    const problems = [];
    const note = (text) => {
      if (!expects.some((pattern) => pattern.test(text))) problems.push(text);
    };
    page.on("console", (message) => {
      if (["error", "warning"].includes(message.type())) {
        note(`${message.text()} (${message.location().url})`);
      }
    });
    page.on("pageerror", (error) => note(error.stack ?? String(error)));
    page.on("requestfailed", (request) => {
      const why = request.failure()?.errorText ?? "";
      if (why !== "net::ERR_ABORTED") note(`${request.method()} ${request.url()}: ${why}`);
    });
    page.setDefaultTimeout(15_000);
    this.#pages.push({ path, problems });
    await page.goto(path);
    return page;
  }

  /** Return what went wrong on any page since the last call. */
  takeProblems() {
    return this.#pages.flatMap(({ path, problems }) =>
      problems.splice(0).map((problem) => `${path}: ${problem}`),
    );
  }

  /** Stop everything; fails if something went wrong on a page. */
  async close() {
    await this.#browser?.close();
    await this.stopServer();
    await this.model?.close();
    rmSync(this.folder, { recursive: true, force: true, maxRetries: 5 });
    const problems = this.takeProblems();
    if (problems.length) throw new Error(`Problems on pages:\n${problems.join("\n")}`);
  }

  #environment() {
    const inherited = Object.entries(process.env).filter(
      ([name]) => !/^WEFT_|_API_KEY$|_BASE_URL$|^PYTHONDONTWRITEBYTECODE$/.test(name),
    );
    return { ...Object.fromEntries(inherited), ...this.#settings };
  }
}

/**
 * Return the longest task on the main threads of pages while something is done, in milliseconds of
 * processor time: a busy machine does not change it.
 */
export async function longestTask(page, act) {
  const browser = page.context().browser();
  await browser.startTracing(page, { categories: ["toplevel"] });
  await act();
  const { traceEvents } = JSON.parse((await browser.stopTracing()).toString());
  const main = new Set();
  for (const { name, args, pid, tid } of traceEvents) {
    if (name === "thread_name" && args.name === "CrRendererMain") main.add(`${pid} ${tid}`);
  }
  const tasks = traceEvents.filter(
    ({ name, pid, tid }) => name === "ThreadControllerImpl::RunTask" && main.has(`${pid} ${tid}`),
  );
  return Math.max(...tasks.map(({ tdur = 0 }) => tdur)) / 1000;
}

const AXE_TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];

/** Return the violations of WCAG 2.2 AA and of best practice that axe finds on a page. */
export async function findAxeViolations(page, rules = AXE_TAGS) {
  // The protocol of the developer tools, because our policy forbids injected scripts.
  const tools = await page.context().newCDPSession(page);
  const run = `axe.run(document, { runOnly: ${JSON.stringify(rules)} })`;
  try {
    await tools.send("Runtime.evaluate", { expression: readFileSync(AXE, "utf8") });
    const { result, exceptionDetails } = await tools.send("Runtime.evaluate", {
      expression: `${run}.then((found) => JSON.stringify(found.violations))`,
      awaitPromise: true,
      returnByValue: true,
    });
    if (exceptionDetails) throw new Error(JSON.stringify(exceptionDetails));
    return JSON.parse(result.value).map(
      ({ id, nodes }) => `${id}: ${nodes.map((node) => node.target.join(" ")).join(", ")}`,
    );
  } finally {
    await tools.detach();
  }
}
