import { lazy, Suspense } from "react";
import type { ComponentType } from "react";

import { Bones, Tabs } from "../../parts";
import { itemsAt } from "../../run/select";
import { artifactsAt } from "./artifacts";
import styles from "./index.module.css";
import type { PaneProps } from "./pane";

export interface Tab {
  value: string;
  /** As in "Show the graph". */
  name: string;
  label: string;
  key: string;
}

const PANES: Record<string, ComponentType<PaneProps>> = {
  artifact: lazy(() => import("./ArtifactPane")),
  context: lazy(() => import("./ContextPane")),
  graph: lazy(() => import("./GraphPane")),
  timeline: lazy(() => import("./TimelinePane")),
  board: lazy(() => import("./BoardPane")),
  cost: lazy(() => import("./CostPane")),
};

/** What there is to see of a run besides the conversation. */
export function useTabs(
  { view, seq }: PaneProps,
  { isDeveloper, seesAll }: { isDeveloper: boolean; seesAll: boolean },
): Tab[] {
  const isBoard = view.tail.isBoard || itemsAt(view, view.seq).some(({ kind }) => kind === "artifact");
  const tabs: (Tab & { isThere: boolean })[] = [
    { value: "artifact", name: "the artifact", label: "Artifact", key: "a", isThere: artifactsAt(view, seq).length > 0 },
    { value: "context", name: "the context", label: "Context", key: "c", isThere: isDeveloper },
    { value: "graph", name: "the graph", label: "Graph", key: "g", isThere: isDeveloper },
    { value: "timeline", name: "the timeline", label: "Timeline", key: "t", isThere: seesAll },
    { value: "board", name: "the board", label: "Board", key: "b", isThere: seesAll && isBoard },
    { value: "cost", name: "the cost", label: "Cost", key: "$", isThere: seesAll },
  ];
  return tabs.filter(({ isThere }) => isThere);
}

interface DockProps extends PaneProps {
  tabs: readonly Tab[];
  tab: string;
  onChange: (tab: string) => void;
}

export function Dock({ tabs, tab, onChange, ...pane }: DockProps) {
  const Pane = PANES[tab]!;
  return (
    <div className={styles.dock}>
      <Tabs label="What is behind it" value={tab} tabs={tabs} onChange={onChange}>
        <Suspense fallback={<Bones lines={6} />}>
          <Pane {...pane} />
        </Suspense>
      </Tabs>
    </div>
  );
}
