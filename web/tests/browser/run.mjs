// Runs the browser tests: all, or those whose file names contain one of the arguments.
//
// Without Chromium they are skipped with one loud line; with WEFT_NO_SKIP=1 that is a failure.

import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

import { findChromium } from "./harness.mjs";

// A server, a model and a browser for each file: more than two at once only make each other slow.
const AT_ONCE = 2;
const MOST_SECONDS = 180;

const folder = fileURLToPath(new URL(".", import.meta.url));
const names = process.argv.slice(2);
const files = readdirSync(folder)
  .filter((file) => file.endsWith(".test.mjs"))
  .filter((file) => !names.length || names.some((name) => file.includes(name)))
  .sort();

if (!files.length) {
  console.error(`There is no browser test named ${names.join(", ")}.`);
  process.exit(2);
}
if (!findChromium()) {
  const count = files.map((file) => readFileSync(folder + file, "utf8").match(/^\s*test\(/gm) ?? []).flat();
  const how = "no Chromium (apt install chromium, or set WEFT_CHROMIUM)";
  console.error(`SKIPPED: ${count.length} browser tests, ${how}`);
  process.exit(process.env.WEFT_NO_SKIP === "1" ? 1 : 0);
}
const options = ["--test", `--test-concurrency=${AT_ONCE}`, `--test-timeout=${MOST_SECONDS * 1000}`];
const done = spawnSync(process.execPath, [...options, ...files], { cwd: folder, stdio: "inherit" });
process.exit(done.status ?? 1);
