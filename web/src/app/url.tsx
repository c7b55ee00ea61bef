import { useSyncExternalStore } from "react";
import type { AnchorHTMLAttributes, MouseEvent } from "react";

/** Where the page is: the parts of the path, decoded, and what follows the question mark. */
export interface Route {
  path: string[];
  query: URLSearchParams;
}

// Browsers refuse many writes of the address in a row, so changes of the query are in memory at
// once and in the address a moment later.
const WRITE_AFTER_MS = 250;

const listeners = new Set<() => void>();
let route = readAddress();
let writing: number | undefined;

/** The route now, for code that is not a component. */
export function currentRoute(): Route {
  return route;
}

export function useRoute(): Route {
  return useSyncExternalStore(subscribe, currentRoute);
}

/** Open another address of the page, such as `/runs/ID?panel=graph`. */
export function go(to: string, options?: { replace?: boolean }): void {
  flushQuery();
  if (options?.replace) history.replaceState(null, "", to);
  else history.pushState(null, "", to);
  showAddress();
}

/** Change parts of the query; null removes one. */
export function setQuery(changes: Record<string, string | null>): void {
  const query = new URLSearchParams(route.query);
  for (const [name, value] of Object.entries(changes)) {
    if (value === null) query.delete(name);
    else query.set(name, value);
  }
  if (query.toString() === route.query.toString()) return;
  route = { ...route, query };
  window.clearTimeout(writing);
  writing = window.setTimeout(flushQuery, WRITE_AFTER_MS);
  notify();
}

export interface LinkProps extends Omit<AnchorHTMLAttributes<HTMLAnchorElement>, "href"> {
  to: string;
}

/** A link inside the page. It is a real link: it can be opened in another tab. */
export function Link({ to, onClick, ...props }: LinkProps) {
  function open(event: MouseEvent<HTMLAnchorElement>) {
    onClick?.(event);
    const isPlainClick = event.button === 0 && !event.metaKey && !event.ctrlKey && !event.shiftKey;
    if (event.defaultPrevented || !isPlainClick || props.target) return;
    event.preventDefault();
    go(to);
  }
  return <a {...props} href={to} onClick={open} />;
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

function notify(): void {
  for (const listener of listeners) listener();
}

function flushQuery(): void {
  if (writing === undefined) return;
  window.clearTimeout(writing);
  writing = undefined;
  const query = route.query.toString();
  history.replaceState(null, "", location.pathname + (query && `?${query}`) + location.hash);
}

function readAddress(): Route {
  const path = location.pathname.split("/").filter(Boolean).map(decodePart);
  return { path, query: new URLSearchParams(location.search) };
}

function decodePart(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part; // a "%" that is no escape
  }
}

function showAddress(): void {
  window.clearTimeout(writing);
  writing = undefined;
  route = readAddress();
  notify();
}

window.addEventListener("popstate", showAddress);
