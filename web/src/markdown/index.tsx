import { lexer } from "marked";
import type { MarkedToken, Token, TokensList, Tokens } from "marked";
import { createElement, Fragment, memo, useMemo } from "react";
import type { ReactNode } from "react";

import styles from "./Markdown.module.css";

export interface MarkdownProps {
  text: string;
  /** The level of its highest headings: one more than that of the heading above. */
  level?: number;
}

// What is longer or deeper is shown as it is: the time of the lexer is more than linear.
const LONGEST_BLOCK = 10_000;
const DEEPEST = 20;

const LINKED = ["http:", "https:", "mailto:"];
const ENTITIES = new Map([
  ["amp", "&"], ["lt", "<"], ["gt", ">"], ["quot", '"'], ["apos", "'"], ["nbsp", "\u00a0"],
]);

/** Markdown as elements; HTML in it is shown as text, and links open in another tab. */
export function Markdown({ text, level = 3 }: MarkdownProps) {
  const tokens = useMemo(() => tokensOf(text), [text]);
  if (!tokens) return <div className={`${styles.markdown} ${styles.plain}`}>{text}</div>;
  const levels = headingLevels(tokens, level);
  const links = JSON.stringify(tokens.links);
  return (
    <div className={styles.markdown}>
      {tokens.map((token, index) => (
        <TopBlock key={index} token={token} level={levels[index]} links={links} />
      ))}
    </div>
  );
}

/** Return null for a text that is not read as Markdown. */
function tokensOf(text: string): TokensList | null {
  if (text.split(/\n\s*\n/).some((block) => block.length > LONGEST_BLOCK)) return null;
  try {
    return lexer(text, { gfm: true, breaks: true });
  } catch {
    return null; // It is nested too deeply for the lexer.
  }
}

/** The level of each heading: none is more than one below the heading before it. */
function headingLevels(tokens: Token[], top: number): (number | undefined)[] {
  const depths = tokens.map((token) => (token.type === "heading" ? Number(token.depth) : undefined));
  const least = Math.min(...depths.filter((depth) => depth !== undefined));
  let last = top - 1;
  return depths.map((depth) => {
    if (depth === undefined) return undefined;
    last = Math.min(top + depth - least, last + 1, 6);
    return last;
  });
}

interface TopBlockProps {
  token: Token;
  level: number | undefined;
  /** The addresses that are defined anywhere in the text. */
  links: string;
}

/** While text is streamed only its last block changes, so only that is drawn again. */
const TopBlock = memo(
  ({ token, level }: TopBlockProps) =>
    level === undefined
      ? draw(token as MarkedToken, 0)
      : createElement(`h${level}`, null, all((token as Tokens.Heading).tokens, 1)),
  (was, is) => was.token.raw === is.token.raw && was.level === is.level && was.links === is.links,
);

function all(tokens: Token[] | undefined, depth: number): ReactNode {
  return tokens?.map((token, index) => (
    <Fragment key={index}>{draw(token as MarkedToken, depth)}</Fragment>
  ));
}

function draw(token: MarkedToken, depth: number): ReactNode {
  if (depth > DEEPEST) return token.raw;
  const inside = () => all("tokens" in token ? token.tokens : undefined, depth + 1);
  switch (token.type) {
    case "paragraph":
      return <p>{inside()}</p>;
    case "heading": // In a list or a quotation, which has no place in the outline.
      return <p className={styles.heading}>{inside()}</p>;
    case "blockquote":
      return <blockquote>{inside()}</blockquote>;
    case "list":
      return drawList(token, depth);
    case "table":
      return drawTable(token, depth);
    case "code":
      return (
        <pre tabIndex={0}>
          <code>{token.text}</code>
        </pre>
      );
    case "hr":
      return <hr />;
    case "html":
      return token.block ? <p className={styles.plain}>{token.raw.trim()}</p> : token.raw;
    case "text":
      if (token.tokens) return inside();
      return token.escaped === false ? decoded(token.text) : token.text;
    case "escape":
      return token.text;
    case "strong":
      return <strong>{inside()}</strong>;
    case "em":
      return <em>{inside()}</em>;
    case "del":
      return <del>{inside()}</del>;
    case "codespan":
      return <code>{token.text}</code>;
    case "br":
      return <br />;
    case "checkbox":
      return <input type="checkbox" disabled checked={token.checked} aria-label="done" />;
    case "link":
      return drawLink(token.autolink ? token.href : decoded(token.href), token.title, inside());
    case "image": // Nothing is loaded from elsewhere.
      return drawLink(decoded(token.href), token.title, decoded(token.text) || "image");
    default:
      return null; // Blank lines and definitions of links.
  }
}

function drawLink(address: string, title: string | null | undefined, content: ReactNode): ReactNode {
  const url = URL.canParse(address) ? new URL(address) : null;
  if (!url || !LINKED.includes(url.protocol)) return content;
  return (
    <a href={url.href} title={title ?? undefined} target="_blank" rel="noreferrer">
      {content}
    </a>
  );
}

function drawList({ ordered, start, items }: Tokens.List, depth: number): ReactNode {
  const drawn = items.map((item, index) => (
    <li key={index} className={item.task ? styles.task : undefined}>
      {all(item.tokens, depth + 1)}
    </li>
  ));
  return ordered ? <ol start={Number(start)}>{drawn}</ol> : <ul>{drawn}</ul>;
}

function drawTable({ header, rows }: Tokens.Table, depth: number): ReactNode {
  const cells = (row: Tokens.TableCell[]) =>
    row.map(({ tokens, align, header: isHeader }, index) =>
      createElement(
        isHeader ? "th" : "td",
        { key: index, style: align ? { textAlign: align } : undefined },
        all(tokens, depth + 1),
      ),
    );
  return (
    <div className={styles.table} tabIndex={0} role="group" aria-label="Table">
      <table>
        <thead>
          <tr>{cells(header)}</tr>
        </thead>
        <tbody>
          {rows.map((row, index) => (
            <tr key={index}>{cells(row)}</tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** Resolve the entities that text in Markdown may have. */
function decoded(text: string): string {
  return text.replace(/&(?:#(\d{1,7})|#x([\da-f]{1,6})|(\w+));/gi, (whole, decimal, hex, name) => {
    if (name) return ENTITIES.get(name) ?? whole;
    const code = decimal ? Number(decimal) : Number.parseInt(hex, 16);
    return code > 0 && code <= 0x10ffff ? String.fromCodePoint(code) : whole;
  });
}
