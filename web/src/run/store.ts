/** A run that is followed: what is known of it, how it is connected, and what is sent to it. */
import { useSyncExternalStore } from "react";

import type { ContinuedAnswer, EventsAnswer } from "../protocol/api";
import type { Frame, WireEvent } from "../protocol/frames";
import { type ApiProblem, del, get, pathOf, post } from "../transport/http";
import { followRun } from "../transport/socket";
import { reduceDelta } from "./drafts";
import { keepQueue, readQueue, type QueuedMessage } from "./queue";
import { reduceAll, reduceRun } from "./reduce";
import { statusAt } from "./select";
import type { RunView } from "./view";
import { emptyView } from "./view";

export type Connection =
  | { state: "connecting" }
  | { state: "live" }
  /** It was lost, and is tried again then (epoch milliseconds). */
  | { state: "waiting"; retryAt: number }
  /** The server refuses; nothing is tried again. */
  | { state: "refused"; problem: ApiProblem };

/** What the screen shows of a run: one value for each change, for `useSyncExternalStore`. */
export interface RunState {
  view: RunView;
  connection: Connection;
  /** All events that there were when it was opened have come. */
  isCaughtUp: boolean;
  queued: readonly QueuedMessage[];
}

export interface ForkRequest {
  at: number;
  /** Other values of variables. */
  edits?: Record<string, unknown>;
  /** What the user says instead of the message that began the turn. */
  message?: string | null;
  model?: string | null;
}

const FIRST_WAIT_MS = 400;
const LONGEST_WAIT_MS = 2_000;
// The server pings every 20 seconds: a connection that is silent for longer is lost.
const SILENT_MS = 50_000;
// A component that is replaced leaves the run for a moment.
const LINGER_MS = 1_000;
// A message that was accepted is shown by its event, which comes at about the same time.
const EVENT_COMES_MS = 1_000;
const PAGE = 500;

/** The events of one run, and the commands to it. It is connected while somebody listens. */
export class RunStore {
  readonly run: string;
  /** What was last told to the listeners. */
  state: RunState;

  #next: RunState;
  #listeners = new Set<() => void>();
  #frame: number | undefined;
  #stop: (() => void) | undefined;
  #failures = 0;
  #timers = new Map<string, ReturnType<typeof setTimeout>>();
  /** The frames that came while events before them are read; null: none are read. */
  #held: Frame[] | null = null;
  #isSending = false;
  #accepted = new Set<string>();

  constructor(run: string) {
    this.run = run;
    this.state = {
      view: emptyView(run), connection: { state: "connecting" }, isCaughtUp: false,
      queued: readQueue(run),
    };
    this.#next = this.state;
  }

  getState = (): RunState => this.state;

  subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    const isFirst = this.#listeners.size === 1;
    if (isFirst && !this.#stop && !this.#timers.has("retry")) this.#open();
    return () => {
      this.#listeners.delete(listener);
      if (this.#listeners.size === 0) this.#after("leave", LINGER_MS, () => this.#leave());
    };
  };

  close(): void {
    this.#stop?.();
    this.#stop = undefined;
    this.#held = null;
    for (const timer of this.#timers.values()) clearTimeout(timer);
    this.#timers.clear();
    if (this.#frame !== undefined) cancelAnimationFrame(this.#frame);
    this.#frame = undefined;
    window.removeEventListener("online", this.#retryNow);
    document.removeEventListener("visibilitychange", this.#retryNow);
    if (stores.get(this.run) === this) stores.delete(this.run);
  }

  // -- commands

  /** Queue a message; it is sent when there is a connection, again after a lost one, once. */
  say(text: string): void {
    const id = Array.from(crypto.getRandomValues(new Uint32Array(4)), (part) => part.toString(36));
    this.#setQueue([...this.#next.queued, { id: id.join(""), text, problem: null }]);
    void this.#sendQueue();
  }

  sayAgain(id: string): void {
    this.#setMessage(id, null);
    void this.#sendQueue();
  }

  dropMessage(id: string): void {
    this.#accepted.delete(id);
    this.#setQueue(this.#next.queued.filter((message) => message.id !== id));
  }

  // Commands are requests, not messages of the socket: the same with a stream, and their answers
  // have statuses. Each of these is acknowledged by the server, or throws an ApiProblem.

  async answer(request: string, value: unknown): Promise<void> {
    await post(this.#path("answers", request), { value });
  }

  async cancelRequest(request: string): Promise<void> {
    await del(this.#path("answers", request));
  }

  async stop(mode: "now" | "after_turn"): Promise<void> {
    await post(this.#path("cancel"), { mode });
  }

  /** Returns the run that continues: this one, or one that repeats its failed turn. */
  async retry(): Promise<string> {
    return (await post<ContinuedAnswer>(this.#path("retry"))).run;
  }

  /** Returns the new run. */
  async fork(request: ForkRequest): Promise<string> {
    return (await post<ContinuedAnswer>(this.#path("fork"), request)).run;
  }

  async #sendQueue(): Promise<void> {
    // A reply is written piece by piece only while somebody is connected.
    if (this.#isSending || this.#next.connection.state !== "live") return;
    this.#isSending = true;
    for (let message; (message = this.#firstUnsent()); ) {
      const { id, text } = message;
      try {
        await post(this.#path("messages"), { text }, { key: id });
        this.#accepted.add(id);
        setTimeout(() => this.dropMessage(id), EVENT_COMES_MS);
      } catch (error) {
        const problem = error as ApiProblem;
        if (problem.status === 0) {
          this.#after("send", LONGEST_WAIT_MS, () => void this.#sendQueue());
          break;
        }
        this.#setMessage(id, problem);
      }
    }
    this.#isSending = false;
  }

  #firstUnsent(): QueuedMessage | undefined {
    return this.#next.queued.find(({ id, problem }) => problem === null && !this.#accepted.has(id));
  }

  #setMessage(id: string, problem: ApiProblem | null): void {
    const changed = (message: QueuedMessage) => (message.id === id ? { ...message, problem } : message);
    this.#setQueue(this.#next.queued.map(changed));
  }

  #setQueue(queued: readonly QueuedMessage[]): void {
    keepQueue(this.run, queued);
    this.#change({ queued });
  }

  #path(...parts: string[]): string {
    return `/api${pathOf("runs", this.run, ...parts)}`;
  }

  // -- the connection

  #open(): void {
    window.addEventListener("online", this.#retryNow);
    document.addEventListener("visibilitychange", this.#retryNow);
    this.#change({ connection: { state: "connecting" } });
    this.#watch();
    this.#stop = followRun(this.run, this.#next.view.seq, {
      onLive: () => {
        this.#failures = 0;
        this.#change({ connection: { state: "live" } });
      },
      onFrames: (frames) => {
        this.#watch();
        this.#take(frames);
      },
      onEnd: (problem) => this.#end(problem),
    });
  }

  #end(problem: ApiProblem | null): void {
    this.#stop?.();
    this.#stop = undefined;
    this.#held = null;
    this.#cancel("silence");
    const { view, isCaughtUp } = this.#next;
    if (problem && isFinal(problem)) {
      this.#change({ connection: { state: "refused", problem } });
    } else if (!isCaughtUp || statusAt(view, view.seq).status !== "ended") {
      // Not all at once: a server that comes back has many clients.
      const wait = Math.min(FIRST_WAIT_MS * 2 ** this.#failures++, LONGEST_WAIT_MS);
      const ms = wait * (0.75 + Math.random() / 2);
      this.#change({ connection: { state: "waiting", retryAt: Date.now() + ms } });
      this.#after("retry", ms, () => this.#open());
    }
  }

  /** The network or the reader has come back. */
  #retryNow = (): void => {
    if (document.hidden || !this.#timers.has("retry")) return;
    this.#cancel("retry");
    this.#open();
  };

  #watch(): void {
    this.#after("silence", SILENT_MS, () => this.#end(null));
  }

  #leave(): void {
    if (this.#listeners.size > 0) return;
    if (this.#firstUnsent()) this.#after("leave", LINGER_MS, () => this.#leave());
    else this.close();
  }

  // -- what comes

  #take(frames: Frame[]): void {
    if (this.#held) {
      this.#held.push(...frames);
      return;
    }
    for (const [index, frame] of frames.entries()) {
      const { view } = this.#next;
      switch (frame.kind) {
        case "delta":
        case "retry":
        case "progress":
          this.#change({ view: reduceDelta(view, frame) });
          break;
        case "boundary":
          // What is streamed now comes again, and from its beginning.
          this.#change({ view: { ...view, drafts: new Map(), progress: new Map() } });
          break;
        case "caught_up":
          this.#change({ isCaughtUp: true });
          void this.#sendQueue(); // What was accepted before a lost connection is an event now.
          break;
        case "snapshot_needed":
          void this.#readMissed(frames.slice(index + 1));
          return;
        case "ack":
        case "ping":
        case "artifact":
        case "gap":
          break;
        default:
          this.#change({ view: reduceRun(view, frame) });
          this.#dropShown(frame);
      }
    }
  }

  /** Read the events that the connection leaves out, and then what came behind them. */
  async #readMissed(later: Frame[]): Promise<void> {
    const held = (this.#held = later);
    try {
      for (let after: number | null = this.#next.view.seq; after !== null; ) {
        const page: EventsAnswer = await get(`${this.#path("events")}?after=${after}&limit=${PAGE}`);
        if (this.#held !== held) return; // The connection ended meanwhile.
        this.#change({ view: reduceAll(this.#next.view, page.items as WireEvent[]) });
        after = page.next;
      }
    } catch (error) {
      if (this.#held === held) this.#end(error as ApiProblem);
      return;
    }
    this.#held = null;
    this.#take(held);
  }

  /** Drop a message that has become an event. End users are not told which message that was. */
  #dropShown({ kind, data }: WireEvent): void {
    if (kind !== "RequestAnswered") return;
    const { message_id: id, value } = data;
    const isShown = (message: QueuedMessage) =>
      id ? message.id === id : this.#isSending && !message.problem && message.text === value;
    const shown = this.#next.queued.find(isShown);
    if (shown) this.dropMessage(shown.id);
  }

  // -- helpers

  /** Tell the listeners with the next frame of the screen, whatever comes until then. */
  #change(part: Partial<RunState>): void {
    this.#next = { ...this.#next, ...part };
    this.#frame ??= requestAnimationFrame(() => {
      this.#frame = undefined;
      this.state = this.#next;
      for (const listener of this.#listeners) listener();
    });
  }

  #after(name: string, ms: number, act: () => void): void {
    this.#cancel(name);
    const timer = setTimeout(() => {
      this.#timers.delete(name);
      act();
    }, ms);
    this.#timers.set(name, timer);
  }

  #cancel(name: string): void {
    clearTimeout(this.#timers.get(name));
    this.#timers.delete(name);
  }
}

/** Whether it makes no sense to try again: the reader may not see it, or it does not exist. */
function isFinal({ status }: ApiProblem): boolean {
  return status >= 400 && status < 500 && status !== 408 && status !== 429;
}

const stores = new Map<string, RunStore>();

/** The store of a run while a component is mounted; components of one page share it. */
export function useRun(run: string): { store: RunStore; state: RunState } {
  const store = stores.get(run) ?? new RunStore(run);
  stores.set(run, store);
  return { store, state: useSyncExternalStore(store.subscribe, store.getState) };
}
