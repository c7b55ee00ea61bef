import { act, createElement } from "react";
import { createRoot } from "react-dom/client";
import { afterEach, beforeEach, expect, test, vi } from "vitest";

import { claimTab } from "./queue";
import { eventsAt, itemsAt } from "./select";
import { RunStore, useRun } from "./store";

/** A socket whose server is the test. */
class FakeSocket {
  static CONNECTING = 0;
  static all: FakeSocket[] = [];
  readyState = 0;
  sent: Record<string, unknown>[] = [];
  onopen: (() => void) | null = null;
  onclose: (() => void) | null = null;
  onmessage: ((message: { data: string }) => void) | null = null;

  constructor(readonly url: string) {
    FakeSocket.all.push(this);
  }
  send(text: string) {
    this.sent.push(JSON.parse(text));
  }
  close() {
    this.readyState = 3;
  }
  receive(...frames: object[]) {
    this.onmessage?.({ data: JSON.stringify(frames) });
  }
  accept() {
    this.readyState = 1;
    this.onopen?.();
    this.receive({ kind: "ack", id: "follow", ok: true, run: "r" });
  }
  lose() {
    this.readyState = 3;
    this.onclose?.();
  }
}

const last = () => FakeSocket.all.at(-1)!;

function event(seq: number, kind = "MessageShown", data: object = { text: `note ${seq}` }, turn = 0) {
  return { v: 1, seq, ts: seq * 10, run: "r", turn, kind, actor: "", cause: 0, data };
}

const CAUGHT_UP = { kind: "caught_up", run: "r", seq: 0 };
const PROBLEM = { code: "HTTP404", message: "not found", cause: [], hint: [], findings: [] };

const fetched = vi.fn<(path: string, options: RequestInit) => Promise<Response>>();
let store: RunStore;

function json(body: unknown, status = 200) {
  return Promise.resolve(new Response(JSON.stringify(body), { status }));
}

function follow() {
  store.subscribe(() => {});
  last().accept();
}

/** Let the next frame of the screen come, and everything that waits for no time. */
const frame = () => vi.advanceTimersByTimeAsync(20);
const texts = () => store.state.queued.map(({ text }) => text);
const seqs = () => eventsAt(store.state.view, 1e9).map(({ seq }) => seq);

beforeEach(() => {
  vi.useFakeTimers();
  vi.stubGlobal("WebSocket", FakeSocket);
  vi.stubGlobal("fetch", fetched);
  fetched.mockReset();
  fetched.mockImplementation(() => Promise.reject(new TypeError("no network")));
  FakeSocket.all = [];
  sessionStorage.clear();
  store = new RunStore("r");
});

afterEach(() => {
  store.close();
  vi.unstubAllGlobals();
  vi.useRealTimers();
});

test("all that comes between two frames of the screen is told at once", async () => {
  const told = vi.fn();
  store.subscribe(told);
  expect(last().url).toMatch(/^ws.*\/api\/ws$/);
  last().accept();
  expect(last().sent).toEqual([{ v: 1, id: "follow", cmd: "follow", run: "r", after: 0 }]);
  last().receive(event(1), event(2));
  last().receive(event(3), CAUGHT_UP);
  expect(seqs()).toEqual([]);
  await frame();
  expect(told).toHaveBeenCalledTimes(1);
  expect(seqs()).toEqual([1, 2, 3]);
  expect(store.state).toMatchObject({ isCaughtUp: true, connection: { state: "live" } });
});

test("a lost connection is resumed after the last event, again and again", async () => {
  follow();
  last().receive(event(1), event(2), CAUGHT_UP);
  last().lose();
  await frame();
  expect(store.state.connection.state).toBe("waiting");
  await vi.advanceTimersByTimeAsync(600);
  expect(FakeSocket.all).toHaveLength(2);
  last().lose();
  await frame();
  expect(store.state.connection.state).toBe("waiting");
  await vi.advanceTimersByTimeAsync(1_500);
  last().accept();
  expect(last().sent[0]).toMatchObject({ cmd: "follow", after: 2 });
  last().receive(event(2), event(3));
  await frame();
  expect(seqs()).toEqual([1, 2, 3]);
  expect(store.state.connection.state).toBe("live");
});

test("streamed text begins again with a resumed connection", async () => {
  const piece = (offset: number, text: string) => ({
    v: 1, run: "r", turn: 1, kind: "delta", data: { call: 5, offset, text },
  });
  const draft = () => store.state.view.drafts.get(5)?.text;
  follow();
  last().receive(CAUGHT_UP, piece(0, "Hel"), piece(3, "lo"));
  await frame();
  expect(draft()).toBe("Hello");
  last().receive({ kind: "boundary", run: "r", seq: 0 }, CAUGHT_UP, piece(0, "Hello there"));
  await frame();
  expect(draft()).toBe("Hello there");
  last().receive({ kind: "boundary", run: "r", seq: 0 }, CAUGHT_UP);
  await frame();
  expect(draft()).toBeUndefined();
});

test("a run that may not be seen is refused, and not tried again", async () => {
  store.subscribe(() => {});
  last().readyState = 1;
  last().onopen?.();
  last().receive({ kind: "ack", id: "follow", ok: false, problem: PROBLEM });
  await vi.advanceTimersByTimeAsync(60_000);
  expect(store.state.connection).toMatchObject({ state: "refused", problem: { status: 404 } });
  expect(FakeSocket.all).toHaveLength(1);
});

test("without a socket the run is followed over a stream", async () => {
  const bytes = new TextEncoder().encode(
    `id: 1\nevent: MessageShown\ndata: ${JSON.stringify(event(1, "MessageShown", { text: "é" }))}\n\n` +
      `: ping\n\nevent: caught_up\ndata: ${JSON.stringify(CAUGHT_UP)}\n\n`,
  );
  let server: ReadableStreamDefaultController<Uint8Array>;
  const body = new ReadableStream<Uint8Array>({ start: (controller) => void (server = controller) });
  fetched.mockImplementation(() => Promise.resolve(new Response(body)));
  store.subscribe(() => {});
  last().lose();
  await frame();
  expect(fetched.mock.calls[0]![0]).toBe("/api/runs/r/stream?after=0");
  for (const byte of bytes) server!.enqueue(new Uint8Array([byte]));
  await frame();
  expect(itemsAt(store.state.view, 9)).toMatchObject([{ kind: "note", text: "é" }]);
  expect(store.state).toMatchObject({ isCaughtUp: true, connection: { state: "live" } });
  server!.close();
  await frame();
  expect(store.state.connection.state).toBe("waiting");
});

test("a caller who is not signed in is told so", async () => {
  fetched.mockImplementation(() => json({ ...PROBLEM, code: "HTTP401", message: "sign in" }, 401));
  store.subscribe(() => {});
  last().lose();
  await frame();
  expect(store.state.connection).toMatchObject({ state: "refused", problem: { code: "HTTP401" } });
});

test("a server that has too much to do is tried again", async () => {
  fetched.mockImplementation(() => json({ ...PROBLEM, code: "HTTP429" }, 429));
  store.subscribe(() => {});
  last().lose();
  await frame();
  expect(store.state.connection.state).toBe("waiting");
});

test("pings are answered, and a silent connection is given up", async () => {
  follow();
  await vi.advanceTimersByTimeAsync(45_000);
  last().receive({ v: 1, kind: "ping" });
  expect(last().sent.at(-1)).toEqual({ v: 1, cmd: "pong" });
  await vi.advanceTimersByTimeAsync(45_000);
  expect(store.state.connection.state).toBe("live");
  await vi.advanceTimersByTimeAsync(10_000);
  expect(FakeSocket.all).toHaveLength(2);
});

test("a run that has ended needs no connection", async () => {
  follow();
  last().receive(event(1, "RunStarted", { workflow: "W" }), event(2, "RunEnded", { outcome: "completed" }));
  last().receive(CAUGHT_UP);
  last().lose();
  await vi.advanceTimersByTimeAsync(60_000);
  expect(FakeSocket.all).toHaveLength(1);
  expect(store.state.connection.state).toBe("live");
});

test("events that the socket leaves out are read, and what came meanwhile follows them", async () => {
  fetched.mockImplementation((path) => {
    const after = Number(/after=(\d+)/.exec(path)![1]);
    const items = [event(after + 1), event(after + 2)];
    return json({ items, next: after + 2 < 6 ? after + 2 : null });
  });
  follow();
  last().receive({ kind: "snapshot_needed", run: "r", seq: 6 }, CAUGHT_UP);
  last().receive(event(7));
  await frame();
  expect(seqs()).toEqual([1, 2, 3, 4, 5, 6, 7]);
  expect(fetched).toHaveBeenCalledTimes(3);
  expect(store.state.isCaughtUp).toBe(true);
});

test("a message is kept until the server has it, and sent again as the same one", async () => {
  follow();
  store.say("one");
  store.say("two");
  await frame();
  expect(texts()).toEqual(["one", "two"]);
  last().lose();
  await vi.advanceTimersByTimeAsync(1_000);
  expect(fetched).toHaveBeenCalledTimes(1);
  fetched.mockImplementation(() => json({ ok: true }));
  last().accept();
  await frame();
  expect(fetched).toHaveBeenCalledTimes(1);
  last().receive(CAUGHT_UP);
  await frame();
  const sent = fetched.mock.calls.map(([path, { body, headers }]) => ({
    path, body, key: (headers as Record<string, string>)["Idempotency-Key"],
  }));
  expect(sent.map(({ body }) => body)).toEqual(['{"text":"one"}', '{"text":"one"}', '{"text":"two"}']);
  expect(sent[1]).toEqual(sent[0]);
  expect(sent[2]!.key).not.toBe(sent[0]!.key);
  expect(sent[0]!.path).toBe("/api/runs/r/messages");
  last().receive(event(1, "RequestAnswered", { id: "q", value: "one", message_id: sent[0]!.key }));
  await frame();
  expect(texts()).toEqual(["two"]);
  await vi.advanceTimersByTimeAsync(1_000);
  expect(texts(), "also without an event").toEqual([]);
});

test("a refused message can be sent again or dropped", async () => {
  follow();
  fetched.mockImplementation(() => json({ ...PROBLEM, code: "HTTP409" }, 409));
  store.say("now?");
  store.say("or now?");
  await frame();
  const [first, second] = store.state.queued;
  expect(store.state.queued).toMatchObject([{ problem: { code: "HTTP409" } }, { problem: { status: 409 } }]);
  fetched.mockImplementation(() => json({ ok: true }));
  store.sayAgain(first!.id);
  store.dropMessage(second!.id);
  await vi.advanceTimersByTimeAsync(1_100);
  expect(fetched).toHaveBeenCalledTimes(3);
  expect(texts()).toEqual([]);
});

test("queued messages are there again after a reload of the tab, with their ids", async () => {
  follow();
  fetched.mockImplementation(() => json({ ...PROBLEM, code: "HTTP409" }, 409));
  store.say("refused");
  await frame();
  fetched.mockImplementation(() => Promise.reject(new TypeError("no network")));
  store.say("kept");
  await frame();
  const before = store.state.queued;
  store.close();
  store = new RunStore("r");
  expect(new RunStore("another").state.queued).toEqual([]);
  expect(store.state.queued).toEqual(before);
  expect(store.state.queued).toMatchObject([{ problem: { status: 409, code: "HTTP409" } }, { problem: null }]);
  fetched.mockClear();
  fetched.mockImplementation(() => json({ ok: true }));
  follow();
  last().receive(CAUGHT_UP);
  await frame();
  const keys = fetched.mock.calls.map(([, { headers }]) => (headers as Record<string, string>)["Idempotency-Key"]);
  expect(keys).toEqual([before[1]!.id]);
  await vi.advanceTimersByTimeAsync(1_100);
  store.dropMessage(before[0]!.id);
  expect(new RunStore("r").state.queued).toEqual([]);
});

test("a tab that another user signs in to forgets the messages of the first", () => {
  expect(claimTab("local/ada")).toBe(false);
  store.say("of Ada");
  expect(claimTab("local/ada")).toBe(false);
  expect(new RunStore("r").state.queued).toHaveLength(1);
  expect(claimTab("local/ben")).toBe(true);
  expect(new RunStore("r").state.queued).toEqual([]);
});

test("without storage messages are queued in memory", async () => {
  vi.stubGlobal("sessionStorage", {
    getItem: () => { throw new DOMException("no", "SecurityError"); },
    setItem: () => { throw new DOMException("no", "QuotaExceededError"); },
  });
  store = new RunStore("r");
  store.say("one");
  await frame();
  expect(texts()).toEqual(["one"]);
});

test("a command that the server refuses throws its problem", async () => {
  fetched.mockImplementation(() => json({ ...PROBLEM, code: "HTTP409" }, 409));
  await expect(store.answer("q 1", { yes: true })).rejects.toMatchObject({ code: "HTTP409" });
  expect(fetched.mock.calls[0]![0]).toBe("/api/runs/r/answers/q%201");
  fetched.mockImplementation(() => json({ run: "other" }, 201));
  expect(await store.fork({ at: 5, edits: { limit: 3 } })).toBe("other");
  expect(fetched.mock.calls[1]![1].body).toBe('{"at":5,"edits":{"limit":3}}');
  fetched.mockImplementation(() => Promise.reject(new TypeError("no network")));
  await expect(store.stop("now")).rejects.toMatchObject({ status: 0, code: "" });
});

test("components share a store, which is closed behind the last of them", async () => {
  const found: unknown[] = [];
  function Part() {
    found.push(useRun("r").store);
    return null;
  }
  const root = createRoot(document.createElement("div"));
  vi.stubGlobal("IS_REACT_ACT_ENVIRONMENT", true);
  act(() => root.render([createElement(Part, { key: 1 }), createElement(Part, { key: 2 })]));
  expect(FakeSocket.all).toHaveLength(1);
  expect(new Set(found).size).toBe(1);
  act(() => last().accept());
  act(() => root.render(createElement(Part, { key: 2 })));
  await act(() => vi.advanceTimersByTimeAsync(2_000));
  expect(last().readyState).toBe(1);
  act(() => root.unmount());
  await vi.advanceTimersByTimeAsync(2_000);
  expect(last().readyState).toBe(3);
});
