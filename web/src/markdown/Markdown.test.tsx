import { act } from "react";
import { createRoot } from "react-dom/client";
import { afterEach, expect, test, vi } from "vitest";

import { Markdown } from ".";

vi.stubGlobal("IS_REACT_ACT_ENVIRONMENT", true);
const box = document.createElement("div");
let root = createRoot(box);

afterEach(() => {
  act(() => root.unmount());
  root = createRoot(box);
});

function show(text: string, level?: number): HTMLElement {
  act(() => root.render(<Markdown text={text} level={level} />));
  return box.firstElementChild as HTMLElement;
}

const tags = (text: string) => [...show(text).querySelectorAll("*")].map((one) => one.localName);

test("text, lists, code, tables and quotations become elements", () => {
  expect(tags("**a** *b* ~~c~~ `d`\nnext")).toEqual(["p", "strong", "em", "del", "code", "br"]);
  expect(tags("3. a\n4. b")).toEqual(["ol", "li", "li"]);
  expect(box.querySelector("ol")!.start).toBe(3);
  expect(tags("- [x] done\n- [ ] open")).toEqual(["ul", "li", "input", "li", "input"]);
  expect([...box.querySelectorAll("input")].map((one) => one.checked)).toEqual([true, false]);
  expect(tags("```js\n<b>\n```")).toEqual(["pre", "code"]);
  expect(box.textContent).toBe("<b>");
  expect(tags("|a|b|\n|-|-:|\n|1|2|")).toEqual(
    ["div", "table", "thead", "tr", "th", "th", "tbody", "tr", "td", "td"],
  );
  expect((box.querySelector("td:last-child") as HTMLElement).style.textAlign).toBe("right");
  expect(tags("> a\n\n---")).toEqual(["blockquote", "p", "hr"]);
});

test("headings continue the outline of the page", () => {
  const outline = (text: string, level?: number) =>
    [...show(text, level).querySelectorAll("h1,h2,h3,h4,h5,h6")].map((one) => one.localName);
  expect(outline("# a\n\n## b\n\n#### c\n\n# d")).toEqual(["h3", "h4", "h5", "h3"]);
  expect(outline("### a\n\n# b\n\n###### c", 2)).toEqual(["h2", "h2", "h3"]);
  expect(outline("> # a\n\n- ## b")).toEqual([]);
});

test("HTML is shown as text", () => {
  const hostile = '<img src=x onerror=alert(1)>\n\n<script>alert(1)</script>\n\na <b onclick="x">b</b>';
  expect(tags(hostile)).toEqual(["p", "p", "p"]);
  expect(box.textContent).toBe(hostile.replaceAll("\n\n", ""));
});

test("only addresses of the web and of mail are links, and open elsewhere", () => {
  const links = [
    "[a](javascript:alert(1))", "[b](JaVa&#115;cript:alert(1))", "[c](data:text/html,x)",
    "[d](vbscript:x)", "[e](/runs)", "[f](file:///etc/passwd)", "<javascript:alert(1)>",
    "[g](java\nscript:x)", "![h](javascript:x)", "[i]( javascript:x)", "[j](//host)",
  ];
  show(links.join("\n\n"));
  expect(box.querySelectorAll("a, img")).toHaveLength(0);
  show("[a](https://a.example/?b=1&amp;c=2 'title') <b@c.example> https://d.example ![e](http://e.example/f.png)");
  const found = [...box.querySelectorAll("a")];
  expect(found.map((one) => one.href)).toEqual([
    "https://a.example/?b=1&c=2", "mailto:b@c.example", "https://d.example/", "http://e.example/f.png",
  ]);
  for (const link of found) expect([link.target, link.rel]).toEqual(["_blank", "noreferrer"]);
});

test("entities and escaped signs are read", () => {
  show("&lt;b&gt; &amp;amp; &#65;&#x42; &copy; &constructor; \\*not\\* `&lt;`");
  expect(box.textContent).toBe("<b> &amp; AB &copy; &constructor; *not* &lt;");
});

test("blocks above the last one stay while text is streamed", () => {
  const text = "# Title\n\nFirst *words*.\n\n- one\n- two\n\nThe [end][1]\n\n[1]: https://a.example";
  const first = show(text.slice(0, 12)).firstElementChild;
  for (let end = 13; end <= text.length; end += 1) show(text.slice(0, end));
  expect(box.firstElementChild!.firstElementChild).toBe(first);
  expect(box.querySelector("a")!.href).toBe("https://a.example/");
});

test.each([
  ["quotations", ">".repeat(9_000)],
  ["words", "_a_b".repeat(50_000)],
  ["lists", Array.from({ length: 90 }, (_, depth) => `${" ".repeat(depth * 2)}- a`).join("\n")],
  ["brackets", "[".repeat(9_000)],
])("hostile %s are shown quickly", (_, text) => {
  const begun = performance.now();
  expect(show(text).textContent!.length).toBeGreaterThan(50);
  expect(performance.now() - begun).toBeLessThan(1_000);
});
