import { Send } from "lucide-react";
import { lazy, Suspense, useState } from "react";

import { can, useMe } from "../../app/session";
import { go, Link, setQuery, useRoute } from "../../app/url";
import { Bones, Button, Empty, Loaded, Page, Tabs } from "../../parts";
import type { WorkflowAnswer, WorkflowsAnswer } from "../../protocol/api";
import { pathOf } from "../../transport/http";
import { useGet } from "../../transport/queries";
import { Agents } from "./Agents";
import { Artifacts } from "./Artifacts";
import styles from "./board.module.css";
import { boardLink } from "./data";
import { Knowledge } from "./Knowledge";
import { Publish } from "./Publish";

const LazyGraph = lazy(() => import("../../graph/WorkflowGraph"));

const TABS = ["artifacts", "agents", "graph", "knowledge"] as const;
const LABELS = { artifacts: "Artifacts", agents: "Agents", graph: "Graph", knowledge: "Knowledge" };

/** The boards of the workspace: what is on them, and who works with it. */
export default function BoardScreen() {
  const workflows = useGet<WorkflowsAnswer>(["workflows"], "/api/workflows");
  const named = useRoute().path[1];
  return (
    <Loaded query={workflows} lines={8}>
      {({ items }) => {
        const found = items.filter(({ kind }) => kind === "board").map(({ name }) => name);
        const boards = named === undefined || found.includes(named) ? found : [named, ...found];
        const board = named ?? boards[0];
        return board === undefined ? <NoBoards /> : <Board key={board} board={board} boards={boards} />;
      }}
    </Loaded>
  );
}

function NoBoards() {
  return (
    <Page title="Board">
      <Empty title="No workflow has a board" action={<Link to="/workflows">Go to Workflows</Link>}>
        On a board, artifacts that arrive decide which agents work.
      </Empty>
    </Page>
  );
}

function Board({ board, boards }: { board: string; boards: string[] }) {
  const isDeveloper = can(useMe(), "developer");
  const [isPublishing, setPublishing] = useState(false);
  const tabs = TABS.filter((tab) => isDeveloper || tab === "artifacts");
  const asked = useRoute().query.get("tab");
  const tab = tabs.find((name) => name === asked) ?? "artifacts";
  const choice = (
    <select
      className={styles.boards}
      aria-label="Board"
      value={board}
      onChange={(event) => go(boardLink(event.target.value, {}))}
    >
      {boards.map((name) => (
        <option key={name}>{name}</option>
      ))}
    </select>
  );
  const publish = (
    <Button variant="main" icon={<Send />} onClick={() => setPublishing(true)}>
      Publish
    </Button>
  );
  return (
    <Page title="Board" actions={
        <>
          {choice}
          {publish}
        </>
      }>
      <Tabs
        label="Views of the board"
        value={tab}
        tabs={tabs.map((value) => ({ value, label: LABELS[value] }))}
        onChange={(value) => setQuery({ tab: value === "artifacts" ? null : value })}
      >
        {tab === "artifacts" && <Artifacts board={board} onPublish={() => setPublishing(true)} />}
        {tab === "agents" && <Agents board={board} />}
        {tab === "graph" && <Graph board={board} />}
        {tab === "knowledge" && <Knowledge />}
      </Tabs>
      {isPublishing && <Publish board={board} onClose={() => setPublishing(false)} />}
    </Page>
  );
}

function Graph({ board }: { board: string }) {
  const workflow = useGet<WorkflowAnswer>(["workflow", board], `/api/workflows${pathOf(board)}`);
  function show(node: string) {
    const type = node.match(/^type:(.*)$/)?.[1];
    go(boardLink(board, type === undefined ? { producer: node } : { type }));
  }
  return (
    <Loaded query={workflow}>
      {({ spec = {} }) => (
        <Suspense fallback={<Bones />}>
          <LazyGraph spec={spec} onSelect={show} />
        </Suspense>
      )}
    </Loaded>
  );
}
