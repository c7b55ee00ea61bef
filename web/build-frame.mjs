// Builds the document in which components of packages run: one script and one style, inline, with
// their hashes in policy.json for the policy that the server sends with it.

import { createHash } from "node:crypto";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { gzipSync } from "node:zlib";

import { build } from "vite";

const MAX_COMPRESSED = 120_000;

const root = fileURLToPath(new URL(".", import.meta.url));
const { values } = parseArgs({ options: { outDir: { type: "string", default: join(root, "../src/weft/page") } } });
const folder = join(values.outDir, "frame");

const [{ output }] = await build({
  root,
  configFile: false,
  logLevel: "error",
  plugins: [{ name: "leave-out", load: leaveOut }],
  define: { "process.env.NODE_ENV": '"production"' },
  build: {
    write: false,
    target: "es2022",
    assetsInlineLimit: 0,
    lib: { entry: "src/frame/runtime.tsx", formats: ["iife"], name: "weftFrame", cssFileName: "frame" },
  },
});

// Inside a document, the end of a script must not stand in its text.
const script = one(".js").replaceAll("</script", "<\\/script").replaceAll("<!--", "<\\!--").trim();
const style = one(".css").trim();
const template = await readFile(join(root, "src/frame/frame.html"), "utf8");
const html = template.replace("/*STYLE*/", () => style).replace("/*SCRIPT*/", () => script);
const size = gzipSync(html).length;

if (/[\0\r]/.test(html)) throw new Error("the document has signs that a browser would change");
if (size > MAX_COMPRESSED) throw new Error(`the frame has ${size} bytes compressed, more than ${MAX_COMPRESSED}`);

await mkdir(folder, { recursive: true });
await writeFile(join(folder, "frame.html"), html);
await writeFile(join(folder, "policy.json"), JSON.stringify({ script: hash(script), style: hash(style) }));
console.log(`frame: ${(size / 1000).toFixed(1)} KB compressed`);

/** The compiler gets fixed options and makes no source maps: without what those need. */
function leaveOut(id) {
  if (/sucrase.*\/(Options|computeSourceMap)\.js$/.test(id)) {
    return "export function validateOptions() {}\nexport default function computeSourceMap() {}";
  }
  return null;
}

function one(ending) {
  const file = output.find((each) => each.fileName.endsWith(ending));
  if (!file) throw new Error(`the build has no ${ending}`);
  return String(file.type === "chunk" ? file.code : file.source);
}

function hash(text) {
  return `sha256-${createHash("sha256").update(text).digest("base64")}`;
}
