import { useQuery } from "@tanstack/react-query";
import { lazy, Suspense, useEffect, useState } from "react";

import { useKeys } from "../../app/keys";
import { can, useMe } from "../../app/session";
import { go, setQuery, useRoute } from "../../app/url";
import { Bones, Splitter } from "../../parts";
import type { PackageAnswer } from "../../protocol/api";
import { headAt } from "../../run/select";
import { useRun } from "../../run/store";
import { get, pathOf } from "../../transport/http";
import { Announcer } from "./Announcer";
import { Chat } from "./Chat";
import { Composer } from "./Composer";
import { useCursor, usePlayer } from "./cursor";
import { Dock, useTabs } from "./Dock";
import { Header } from "./Header";
import styles from "./index.module.css";
import { useNeighbours } from "./neighbours";
import { Refused } from "./Refused";
import { Strip } from "./Strip";

const ForkDialog = lazy(() => import("./ForkDialog"));

/** A run: what was said on the left, what is behind it on the right, and when below. */
export default function RunScreen() {
  const { path, query } = useRoute();
  const run = path[1] ?? "";
  const me = useMe();
  const isDeveloper = can(me, "developer");
  const seesAll = isDeveloper || can(me, "operator");
  const isPhone = usePhone();
  const { store, state } = useRun(run);
  const { view, connection } = state;
  const cursor = useCursor(state);
  const player = usePlayer(state, cursor);
  const [forkAt, setForkAt] = useState<number | null>(null);
  const pack = useQuery({
    queryKey: ["package", run],
    queryFn: () => get<PackageAnswer>(`/api/runs${pathOf(run)}/package`),
    enabled: isDeveloper && view.seq > 0,
    staleTime: Infinity,
  });
  const pane = { store, view, ...cursor, pack: pack.data ?? null };
  const tabs = useTabs(pane, { isDeveloper, seesAll });
  const asked = query.get("panel");
  const tab = tabs.find(({ value }) => value === asked) ?? tabs[0];
  const isRefused = connection.state === "refused";
  const fork = isDeveloper && !isRefused ? () => setForkAt(cursor.seq) : undefined;

  const goTo = useNeighbours(run);
  useTitle(headAt(view, view.seq)?.workflow);
  useKeys({
    ...(seesAll && {
      j: ["Next event", () => cursor.step(1)],
      k: ["Event before", () => cursor.step(-1)],
      " ": ["Play the run, or pause", player.toggle],
    }),
    ...(fork && { f: ["Fork from here", fork] }),
    "[": ["Run before this one", () => goTo(-1)],
    "]": ["Run after this one", () => goTo(1)],
    ...Object.fromEntries(
      tabs.map(({ key, name, value }) => [key, [`Show ${name}`, () => showPanel(value)] as const]),
    ),
    Escape: [
      "Back to the end",
      () => (isPhone && asked ? showPanel(null) : cursor.setAt(null)),
    ],
  });

  if (connection.state === "refused" && view.seq === 0) {
    return (
      <div className={styles.alone}>
        <Refused view={view} problem={connection.problem} />
      </div>
    );
  }
  const conversation = (
    <div className={styles.conversation}>
      <h2 className="unseen">Conversation</h2>
      {view.seq > 0 ? <Chat {...pane} state={state} onFork={fork} /> : <Bones lines={6} />}
      <Composer state={state} store={store} cursor={cursor} onFork={fork} />
    </div>
  );
  const dock = tab && <Dock {...pane} tabs={tabs} tab={tab.value} onChange={showPanel} />;
  return (
    <div className={styles.screen}>
      <Header
        state={state}
        store={store}
        cursor={cursor}
        onFork={fork}
        onDetails={isPhone && tab ? () => showPanel(tab.value) : undefined}
      />
      {connection.state === "refused" && <Refused view={view} problem={connection.problem} />}
      {isPhone || !dock ? (
        conversation
      ) : (
        <Splitter name="the conversation" left={conversation} right={dock} />
      )}
      {isPhone && asked && dock && (
        <section className={styles.sheet} aria-label="Details">
          {dock}
          <button type="button" className={styles.close} onClick={() => showPanel(null)}>
            Back to the conversation
          </button>
        </section>
      )}
      {seesAll && !isPhone && <Strip view={view} cursor={cursor} player={player} />}
      <Announcer state={state} isLive={cursor.isLive} />
      {forkAt !== null && (
        <Suspense>
          <ForkDialog {...pane} at={forkAt} onClose={() => setForkAt(null)} onForked={openRun} />
        </Suspense>
      )}
    </div>
  );
}

function showPanel(panel: string | null): void {
  setQuery({ panel });
}

function openRun(run: string): void {
  go(`/runs${pathOf(run)}`);
}

function useTitle(workflow: string | undefined): void {
  useEffect(() => {
    if (workflow) document.title = `${workflow} · Weft`;
  }, [workflow]);
}

const PHONE = "(width < 720px)";

/** Whether only the conversation has room. */
function usePhone(): boolean {
  const [isPhone, setPhone] = useState(() => matchMedia(PHONE).matches);
  useEffect(() => {
    const media = matchMedia(PHONE);
    const listen = () => setPhone(media.matches);
    media.addEventListener("change", listen);
    return () => media.removeEventListener("change", listen);
  }, []);
  return isPhone;
}
