import { defaultRangeExtractor, useVirtualizer } from "@tanstack/react-virtual";
import type { Range } from "@tanstack/react-virtual";
import { useLayoutEffect, useMemo, useRef, useState } from "react";

import { agentColor, Empty } from "../../parts";
import type { QueuedMessage } from "../../run/queue";
import { activeAt, openAt, statusAt, threadOf, turnAt } from "../../run/select";
import type { RunState } from "../../run/store";
import type { ChatItem, Draft, RunView, Turn } from "../../run/view";
import { ChatRow } from "./ChatRow";
import styles from "./Chat.module.css";
import type { PaneProps } from "./pane";

/** What the conversation shows: what is stored, and at the end what is on its way. */
export type Row =
  | ChatItem
  | { kind: "draft"; draft: Draft; turn: number }
  | { kind: "activity"; of: Turn; turn: number }
  | { kind: "queued"; message: QueuedMessage; turn: 0 };

export interface ChatProps extends PaneProps {
  state: RunState;
  onFork?: () => void;
}

/** The conversation. Only what is seen is in the document, and open questions, which are filled in. */
export function Chat({ state, onFork, ...pane }: ChatProps) {
  const { view, seq, isLive } = pane;
  const rows = useRows(state, seq, isLive);
  const [opened, setOpened] = useState<ReadonlySet<string>>(new Set());
  const box = useRef<HTMLDivElement>(null);
  const pinned = rows.flatMap((each, index) => (isOpenQuestion(view, each) ? [index] : []));
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => box.current,
    estimateSize: (index) => HEIGHTS[rows[index]!.kind] ?? 40,
    getItemKey: (index) => keyOf(rows[index]!),
    rangeExtractor: (range: Range) =>
      [...new Set([...defaultRangeExtractor(range), ...pinned])].sort((one, other) => one - other),
    overscan: 6,
    paddingStart: 24,
    paddingEnd: 24,
    anchorTo: "end",
    followOnAppend: true,
    scrollEndThreshold: 48,
  });

  // What the cursor stands on is the last thing that is shown; at the end, who reads may scroll.
  const cursor = isLive ? null : seq;
  useLayoutEffect(() => {
    virtual.scrollToEnd();
  }, [virtual, cursor]);

  function toggle(key: string) {
    const next = new Set(opened);
    if (!next.delete(key)) next.add(key);
    setOpened(next);
  }

  return (
    <div ref={box} className={styles.chat} role="log" aria-live="off" aria-label="Conversation" tabIndex={0}>
      {rows.length === 0 && <Empty title="Nothing has been said yet." />}
      <div className={styles.all} style={{ height: virtual.getTotalSize() }}>
        {virtual.getVirtualItems().map(({ index, key, start }) => {
          const each = rows[index]!;
          const thread = threadIn(view, each, seq);
          const before = index > 0 ? threadIn(view, rows[index - 1]!, seq, true) : null;
          return (
            <div
              key={key}
              ref={virtual.measureElement}
              data-index={index}
              className={styles.place}
              style={{
                translate: `0 ${start}px`,
                "--thread": thread === null ? undefined : agentColor(thread),
              }}
            >
              <ChatRow
                {...pane}
                row={each}
                isJoined={thread !== null && before === thread}
                isOpen={opened.has(String(key))}
                onToggle={() => toggle(String(key))}
                onFork={onFork}
              />
            </div>
          );
        })}
      </div>
    </div>
  );
}

/** About how high rows are before they are measured. */
const HEIGHTS: Partial<Record<Row["kind"], number>> = {
  agent: 110, draft: 110, user: 72, request: 220, surface: 160, handoff: 64, trouble: 120,
};

function keyOf(row: Row): string {
  // A reply takes the place of its draft, whose height is known.
  if (row.kind === "draft") return `call ${row.draft.call}`;
  if (row.kind === "agent" && row.call) return `call ${row.call}`;
  if (row.kind === "activity") return `turn ${row.turn}`;
  return row.kind === "queued" ? row.message.id : `event ${row.seq}`;
}

function useRows({ view, queued }: RunState, seq: number, isLive: boolean): Row[] {
  const { items, requests } = view;
  const stored = useMemo(() => shownItems(items.until(seq), requests), [items, requests, seq]);
  if (!isLive) return stored;
  const drafts = [...view.drafts.values()];
  const isWorking = statusAt(view, seq).status === "working";
  const silent = isWorking ? activeAt(view, seq).filter((turn) => isSilent(view, turn, drafts)) : [];
  return [
    ...stored,
    ...drafts.map((draft): Row => ({ kind: "draft", draft, turn: draft.turn })),
    ...silent.map((turn): Row => ({ kind: "activity", of: turn, turn: turn.number })),
    ...queued.map((message): Row => ({ kind: "queued", message, turn: 0 })),
  ];
}

/** Without what says nothing: a tool whose question stands below it, the same trouble once more. */
function shownItems(items: readonly ChatItem[], requests: RunView["requests"]): Row[] {
  const asking = new Set([...requests.values()].map(({ call }) => call));
  return items.filter((item, index) => {
    if (item.kind === "tool") return !asking.has(item.call);
    if (item.kind === "start") return item.input !== null;
    if (item.kind === "handoff") return item.target !== "user" && item.why !== "start";
    if (item.kind === "trouble" && item.what === "turn") {
      const before = items[index - 1];
      return !(before?.kind === "trouble" && before.turn === item.turn && item.error.includes(before.error));
    }
    return true;
  });
}

/** Whether a turn is at work and nothing is seen of it. */
function isSilent(view: RunView, turn: Turn, drafts: readonly Draft[]): boolean {
  return (
    !drafts.some((draft) => draft.turn === turn.number) &&
    !openAt(view, view.seq).some((request) => request.turn === turn.number)
  );
}

function isOpenQuestion(view: RunView, row: Row): boolean {
  return row.kind === "request" && !view.closed.has(row.id);
}

/** The colour number of who a row is of; null for people and for the run itself. */
function threadIn(view: RunView, row: Row, seq: number, isBefore = false): number | null {
  if (row.kind === "user" || row.kind === "note" || row.kind === "queued") return null;
  if (row.kind === "handoff") return threadOf(view, isBefore ? row.target : row.source);
  const turn = turnAt(view, row.turn, Math.max(seq, view.seq));
  return turn ? threadOf(view, turn.agent) : null;
}
