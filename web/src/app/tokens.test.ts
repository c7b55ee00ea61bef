// @vitest-environment node
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";

const SHEET = readFileSync(join(import.meta.dirname, "tokens.css"), "utf8");
const SURFACES = ["paper", "panel", "sunk", "raise"];
const MEANINGS = ["indigo", "madder", "weld", "verdigris"];

/** The colours of a token: light, dark. */
function colours(name: string): [string, string] {
  const found = new RegExp(`--${name}: light-dark\\((#\\w{6}), (#\\w{6})\\)`).exec(SHEET);
  if (!found) throw new Error(`no colour ${name}`);
  return [found[1]!, found[2]!];
}

/** The contrast of WCAG: 1 to 21. */
function contrast(one: string, other: string): number {
  const [dark, light] = [luminance(one), luminance(other)].sort((a, b) => a - b);
  return (light! + 0.05) / (dark! + 0.05);
}

function luminance(colour: string): number {
  const [red, green, blue] = [1, 3, 5].map((from) => {
    const share = Number.parseInt(colour.slice(from, from + 2), 16) / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red! + 0.7152 * green! + 0.0722 * blue!;
}

const pairs = (names: string[], on: string[]) => names.flatMap((name) => on.map((under) => [name, under]));

test.each([
  ...pairs(["ink", "ink-2", "ink-3"], SURFACES),
  ...pairs(MEANINGS, ["paper", "panel", "raise"]),
  ...MEANINGS.map((name) => [name, `${name}-wash`]),
  ...pairs(["ink"], MEANINGS.map((name) => `${name}-wash`)),
  ["on-indigo", "indigo"], ["on-indigo", "indigo-strong"], ["on-weld-solid", "weld-solid"],
  ...pairs(Array.from({ length: 8 }, (_, index) => `thread-${index}`), ["paper", "panel"]),
])("text in %s can be read on %s in both themes", (text, under) => {
  for (const [theme, colour] of colours(text!).entries()) {
    expect(contrast(colour, colours(under!)[theme]!)).toBeGreaterThanOrEqual(4.5);
  }
});

test.each(pairs(["edge"], SURFACES))("the border of a control, %s, is seen on %s", (edge, under) => {
  for (const [theme, colour] of colours(edge!).entries()) {
    expect(contrast(colour, colours(under!)[theme]!)).toBeGreaterThanOrEqual(3);
  }
});
