import { GitFork, RotateCcw, Square, Wifi, WifiOff } from "lucide-react";
import { useEffect, useState } from "react";

import { can, useMe } from "../../app/session";
import { go, Link } from "../../app/url";
import {
  ActionDialog, Button, Chip, Code, Cost, download, Duration, Menu, Problem, statusOf, TextField, Tokens,
} from "../../parts";
import type { MenuItem, Tone } from "../../parts";
import { isAddressed } from "../../requests/RequestCard";
import { clocksAt, eventsAt, headAt, spentAt, statusAt } from "../../run/select";
import type { Status } from "../../run/select";
import type { RunState, RunStore } from "../../run/store";
import type { RunView } from "../../run/view";
import { pathOf, post } from "../../transport/http";
import type { Cursor } from "./cursor";
import styles from "./Header.module.css";

interface HeaderProps {
  state: RunState;
  store: RunStore;
  cursor: Cursor;
  onFork?: () => void;
  /** Opens what stands beside the conversation where there is room. */
  onDetails?: () => void;
}

export function Header({ state, store, cursor, onFork, onDetails }: HeaderProps) {
  const { view } = state;
  const { seq, isLive } = cursor;
  const [error, setError] = useState<unknown>(null);
  const [isSaving, setSaving] = useState(false);
  const me = useMe();
  const seesCosts = can(me, "developer") || can(me, "operator");
  const head = headAt(view, seq);
  const status = statusAt(view, seq);
  const present = statusAt(view, view.seq);
  const isRefused = state.connection.state === "refused";
  const canStop = !isRefused && (present.status === "working" || present.status === "waiting");
  const canSave = can(me, "developer") && present.status !== "working";

  function perform(act: () => Promise<unknown>) {
    setError(null);
    act().catch(setError);
  }

  async function retry() {
    const next = await store.retry();
    if (next !== view.run) go(`/runs${pathOf(next)}`);
  }

  const stopLater: MenuItem = {
    label: "Stop after this turn",
    onClick: () => perform(() => store.stop("after_turn")),
    disabled: !canStop || present.stopping,
  };
  const items: MenuItem[] = [
    ...(onDetails ? [{ label: "Show what is behind it", onClick: onDetails }] : []),
    ...(canStop ? [stopLater] : []),
    { label: "Download the events", onClick: () => downloadEvents(view) },
    ...(canSave ? [{ label: "Save as test", onClick: () => setSaving(true) }] : []),
    ...(head ? [{ label: "Open the workflow", onClick: () => go(`/workflows${pathOf(head.workflow)}`) }] : []),
  ];
  return (
    <>
      <header className={styles.header}>
        <div className={styles.name}>
          <h1>{head?.workflow ?? "Run"}</h1>
          <span className={styles.ids}>
            {head?.digest && <Code>{head.digest.slice(0, 7)}</Code>}
            <Code>…{view.run.slice(-6)}</Code>
            {head?.parent && <Link to={`/runs${pathOf(head.parent)}`}>fork of …{head.parent.slice(-6)}</Link>}
          </span>
          <StatusChip status={status} user={head?.user ?? ""} />
        </div>
        {seesCosts && <Figures view={view} seq={seq} isTicking={isLive && status.status !== "ended"} />}
        <div className={styles.actions}>
          <Pill state={state} />
          {onFork && (
            <Button icon={<GitFork />} onClick={onFork} className={styles.wide}>
              Fork
            </Button>
          )}
          {present.outcome === "failed" && !isRefused && (
            <Button icon={<RotateCcw />} onClick={() => perform(retry)}>
              Retry
            </Button>
          )}
          {canStop && (
            <Button
              icon={<Square />}
              disabled={present.stopping}
              aria-label={present.stopping ? undefined : "Stop"}
              onClick={() => perform(() => store.stop("now"))}
            >
              {present.stopping ? "Stopping…" : <span className={styles.wide}>Stop</span>}
            </Button>
          )}
          <Menu label="More of this run" items={items} />
        </div>
      </header>
      {error !== null && <Problem error={error} />}
      {isSaving && head && (
        <ActionDialog
          title="Save as test"
          action="Save"
          perform={async (fields) => {
            await post(`/api/runs${pathOf(view.run)}/save-test`, { name: fields.get("name") || null });
            go(`/workflows${pathOf(head.workflow)}?tab=tests`);
          }}
          onClose={() => setSaving(false)}
        >
          <TextField
            label="Name"
            name="name"
            pattern="[\w\-]{1,100}"
            placeholder={`run_${view.run.slice(-8)}`}
            hint={`Becomes a file of ${head.workflow}. The run is played again first: it must go the same way.`}
          />
        </ActionDialog>
      )}
    </>
  );
}

function StatusChip({ status, user }: { status: Status; user: string }) {
  const me = useMe();
  const { tone, word } = chipOf(status, (request) => isAddressed(me, { ...request, user: user || me.user }));
  return <Chip tone={tone}>{word}</Chip>;
}

function chipOf(
  { status, stopping, outcome, waitingFor }: Status,
  isMine: (request: Status["waitingFor"][number]) => boolean,
): { tone: Tone; word: string } {
  if (status === "new") return { tone: "plain", word: "starting" };
  if (status === "ended") return statusOf({ status: "ended", outcome });
  if (stopping) return { tone: "wait", word: "stopping…" };
  if (status === "working") return { tone: "live", word: "working" };
  return { tone: "wait", word: waitingFor.some(isMine) ? "waiting for you" : "waiting" };
}

interface FiguresProps {
  view: RunView;
  seq: number;
  isTicking: boolean;
}

function Figures({ view, seq, isTicking }: FiguresProps) {
  const now = useNow(isTicking);
  const { worked, waited } = clocksAt(view, seq, isTicking ? Math.max(now, view.at) : undefined);
  const spent = spentAt(view, seq);
  const figures = {
    worked: <Duration ms={inSeconds(worked, isTicking)} />,
    waited: <Duration ms={inSeconds(waited, isTicking)} />,
    tokens: <Tokens input={spent.input} output={spent.output} unmetered={spent.unmetered} />,
    cost: <Cost usd={spent.cost} unpriced={spent.unpriced} />,
  };
  return (
    <dl className={styles.figures}>
      {Object.entries(figures).map(([name, figure]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{figure}</dd>
        </div>
      ))}
    </dl>
  );
}

/** A clock that ticks each second shows whole seconds, from the first one on. */
function inSeconds(ms: number, isTicking: boolean): number {
  return isTicking && ms >= 1000 ? Math.floor(ms / 1000) * 1000 : ms;
}

function useNow(isTicking: boolean): number {
  const [now, setNow] = useState(Date.now);
  useEffect(() => {
    if (!isTicking) return;
    const timer = setInterval(() => setNow(Date.now()), 1000);
    return () => clearInterval(timer);
  }, [isTicking]);
  return now;
}

function Pill({ state: { connection, isCaughtUp, view } }: { state: RunState }) {
  if (connection.state === "live") {
    // Nothing more comes.
    if (statusAt(view, view.seq).status === "ended") return null;
    return (
      <span className={styles.pill}>
        <Wifi aria-hidden="true" /> {isCaughtUp ? "live" : `reading event ${view.seq}`}
      </span>
    );
  }
  const away = view.seq > 0 ? `offline, showing up to event ${view.seq}` : "connecting";
  const word = connection.state === "refused" ? "not followed" : away;
  return (
    <span className={`${styles.pill} ${styles.off}`} role="status">
      <WifiOff aria-hidden="true" /> {word}
    </span>
  );
}

function downloadEvents(view: RunView): void {
  const lines = eventsAt(view, view.seq).map((event) => `${JSON.stringify(event)}\n`);
  download(`${view.run}.jsonl`, lines.join(""));
}
