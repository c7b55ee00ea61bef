import type { FromFrame, ToFrame } from "./messages";

export const TICK_MS = 500;
/** In ticks, not in time: a computer that slept, or a page that was busy, ticks once. */
const TICKS_TO_LOAD = 20;
const TICKS_TO_READY = 5;
const TICKS_TO_PONG = 7;

export const MAX_RESPONSE = 1_000_000;
export const MAX_HEIGHT = 1_600;
const MAX_REASON = 300;
const MAX_MESSAGES_PER_TICK = 200;

interface Handlers {
  post(message: ToFrame): void;
  /** Whether the person has just clicked or typed, in the frame or beside it. */
  isPersonActive(): boolean;
  onSize(height: number): void;
  onReady(): void;
  onResponse(value: unknown): void;
  onCancel(): void;
  onFail(reason: string): void;
}

/** What the page believes of a frame: whether it lives, and which of its messages count. */
export class FrameLink {
  #handlers: Handlers;
  #state: "loading" | "starting" | "ready" | "closed" = "loading";
  #ticks = 0;
  #silentTicks = 0;
  #messages = 0;

  constructor(handlers: Handlers) {
    this.#handlers = handlers;
  }

  /** The frame has a document. A second one is not the document that the page has opened. */
  load(start: ToFrame): void {
    if (this.#state === "closed") return;
    if (this.#state !== "loading") return this.#fail("it left its place");
    this.#state = "starting";
    this.#ticks = 0;
    this.#handlers.post(start);
  }

  tick(): void {
    if (this.#state === "closed") return;
    this.#ticks += 1;
    this.#messages = 0;
    if (this.#state === "loading") {
      if (this.#ticks > TICKS_TO_LOAD) this.#fail("it could not be loaded");
    } else if (this.#state === "starting" && this.#ticks > TICKS_TO_READY) {
      this.#fail("it did not start within two seconds");
    } else if (this.#silentTicks > TICKS_TO_PONG) {
      this.#fail("it did not react for three seconds");
    } else {
      if (this.#silentTicks === 0) this.#handlers.post({ type: "ping" });
      this.#silentTicks += 1;
    }
  }

  receive(data: unknown): void {
    if (this.#state === "loading" || this.#state === "closed") return;
    this.#messages += 1;
    if (this.#messages > MAX_MESSAGES_PER_TICK) return this.#fail("it sent too many messages");
    const message = data as FromFrame | null;
    switch (message?.type) {
      case "ready":
        this.#state = "ready";
        return this.#handlers.onReady();
      case "pong":
        this.#silentTicks = 0;
        return;
      case "size":
        return this.#resize(message.height);
      case "response":
        return this.#respond(message.json);
      case "cancel":
        if (this.#isMeant()) this.#handlers.onCancel();
        return;
      case "error":
        return this.#fail(String(message.message).slice(0, MAX_REASON));
      default:
        return this.#fail("it sent an unknown message");
    }
  }

  close(): void {
    this.#state = "closed";
  }

  #resize(height: unknown): void {
    if (typeof height !== "number" || !Number.isFinite(height)) {
      return this.#fail("it sent an invalid size");
    }
    this.#handlers.onSize(Math.min(MAX_HEIGHT, Math.max(0, Math.ceil(height))));
  }

  #respond(json: unknown): void {
    if (typeof json !== "string") return this.#fail("its answer is not JSON");
    if (json.length > MAX_RESPONSE) return this.#fail("its answer is larger than 1 MB");
    if (!this.#isMeant()) return;
    let value: unknown;
    try {
      value = JSON.parse(json);
    } catch {
      return this.#fail("its answer is not JSON");
    }
    this.#handlers.onResponse(value);
  }

  /** A component answers because a person did something; never by itself. */
  #isMeant(): boolean {
    if (this.#state === "ready" && this.#handlers.isPersonActive()) return true;
    this.#fail("it answered by itself");
    return false;
  }

  #fail(reason: string): void {
    this.close();
    this.#handlers.onFail(reason);
  }
}
