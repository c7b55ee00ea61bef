// Takes pictures of every screen in both themes, into build/shots: `make shots`.

import { mkdirSync } from "node:fs";
import { join } from "node:path";

import { findChromium, ROOT } from "./browser/harness.mjs";
import { openScene, startScenes } from "./scenes.mjs";

const FOLDER = join(ROOT, "build/shots");

if (!findChromium()) {
  console.error("There is no Chromium: apt install chromium, or set WEFT_CHROMIUM.");
  process.exit(1);
}
mkdirSync(FOLDER, { recursive: true });
const { world, scenes } = await startScenes();
try {
  for (const scene of scenes) {
    const page = await openScene(world, scene);
    for (const colorScheme of ["light", "dark"]) {
      await page.emulateMedia({ colorScheme });
      await page.screenshot({ path: join(FOLDER, `${scene.name}-${colorScheme}.png`) });
    }
    await page.close();
  }
} finally {
  await world.close();
}
