// What the page and a frame say to each other. A frame may say anything: `link.ts` checks it.

export type Theme = "light" | "dark" | "";

export type ToFrame =
  | { type: "start"; source: string; payload: unknown; theme: Theme }
  | { type: "theme"; theme: Theme }
  | { type: "ping" };

export type FromFrame =
  | { type: "ready" | "cancel" | "pong" }
  | { type: "size"; height: number }
  | { type: "response"; json: string }
  | { type: "error"; message: string };
