import { useDeferredValue, useMemo, useState } from "react";

import { agentColor, Duration, Empty, Rows } from "../../parts";
import type { WireEvent } from "../../protocol/frames";
import { threadOf } from "../../run/select";
import { barsAt } from "./bars";
import type { PaneProps } from "./pane";
import styles from "./Panes.module.css";
import { PartChoice, usePart } from "./PartChoice";
import { summaryOf } from "./summary";

const PARTS = { steps: "Steps", events: "Events" };

/** What happened when: as bars, or event by event. */
export default function TimelinePane(props: PaneProps) {
  return usePart(PARTS) === "events" ? <Events {...props} /> : <Steps {...props} />;
}

function Steps({ view, seq, setAt }: PaneProps) {
  const { bars, scale } = useMemo(() => barsAt(view, seq), [view, seq]);
  return (
    <div className={styles.pane}>
      <div className={styles.head}>
        <PartChoice parts={PARTS} />
      </div>
      {bars.length === 0 && <Empty title="No step was taken up to here." />}
      <Rows
        label="Steps"
        items={bars}
        estimate={28}
        keyOf={({ span }) => span.id}
        render={({ span, turn, isFirst, words, end, error }) => {
          const [from, to] = [scale(span.start), scale(end)];
          return (
            <button
              type="button"
              className={`${styles.row} ${styles.step}`}
              style={{ "--thread": agentColor(threadOf(view, span.agent)) }}
              onClick={() => setAt(span.seq)}
            >
              <b>{isFirst && turn > 0 && `${turn} · ${span.agent}`}</b>
              <span title={error ?? undefined}>{words}</span>
              <span className={styles.track}>
                <span
                  className={`${styles.bar} ${styles[span.kind] ?? ""} ${error ? styles.failed : ""}`}
                  style={{ left: `${from * 100}%`, width: `${(to - from) * 100}%` }}
                />
              </span>
              <Duration ms={end - span.start} />
            </button>
          );
        }}
      />
    </div>
  );
}

function Events({ view, seq, setAt }: PaneProps) {
  const [text, setText] = useState("");
  const [kind, setKind] = useState("");
  const words = useDeferredValue(text.toLowerCase().trim());
  const events = useMemo(() => view.events.until(Infinity), [view.events]);
  const found = useMemo(
    () => events.filter((event) => (!kind || event.kind === kind) && (!words || textOf(event).includes(words))),
    [events, kind, words],
  );
  const began = events[0]?.ts ?? 0;
  return (
    <div className={styles.pane}>
      <div className={styles.head}>
        <PartChoice parts={PARTS} />
        <input
          type="search"
          aria-label="Find events"
          placeholder="Find in events"
          value={text}
          onChange={(event) => setText(event.target.value)}
        />
        <select aria-label="Kind of event" value={kind} onChange={(event) => setKind(event.target.value)}>
          <option value="">All kinds</option>
          {[...view.byKind.keys()].sort().map((each) => (
            <option key={each}>{each}</option>
          ))}
        </select>
        {found.length === events.length ? `${found.length} events` : `${found.length} of ${events.length}`}
      </div>
      {found.length === 0 && <Empty title="No event has these words." />}
      <Rows
        label="Events"
        items={found}
        estimate={32}
        current={found.findIndex((event) => event.seq === seq)}
        keyOf={(event) => event.seq}
        render={(event) => (
          <>
            <button
              type="button"
              aria-current={event.seq === seq ? "step" : undefined}
              className={`${styles.row} ${event.seq > seq ? styles.later : ""}`}
              onClick={() => setAt(event.seq)}
            >
              <span className="number">{event.seq}</span>
              <b>{event.kind}</b>
              <span>{summaryOf(event)}</span>
              <Duration ms={event.ts - began} />
            </button>
            {event.seq === seq && (
              <pre tabIndex={0} className={styles.data}>
                {JSON.stringify(event, null, 2).slice(0, MOST_SHOWN)}
              </pre>
            )}
          </>
        )}
      />
    </div>
  );
}

const MOST_SHOWN = 20_000;
const texts = new WeakMap<WireEvent, string>();

/** The event as text in which words are found, made once. */
function textOf(event: WireEvent): string {
  const text = texts.get(event) ?? `${event.kind} ${event.actor} ${JSON.stringify(event.data)}`.toLowerCase();
  texts.set(event, text);
  return text;
}
