import { useQuery } from "@tanstack/react-query";
import { useEffect, useState } from "react";

import { can, useMe } from "../../app/session";
import { setQuery, useRoute } from "../../app/url";
import { readSpec } from "../../graph/spec";
import { Health } from "../../packages/FindingList";
import { Chip, Loaded, Page, Tabs } from "../../parts";
import type { FindingsAnswer, WorkflowAnswer } from "../../protocol/api";
import { get, pathOf } from "../../transport/http";
import { FilesTab } from "./FilesTab";
import type { Drafts } from "./FilesTab";
import { FindingsTab } from "./FindingsTab";
import { GraphTab } from "./GraphTab";
import { Overview } from "./Overview";
import { SequenceTab } from "./SequenceTab";
import { TestsTab } from "./TestsTab";
import { VersionsTab } from "./VersionsTab";

type Tab = "overview" | "graph" | "sequence" | "files" | "findings" | "tests" | "versions";

/** One workflow: start it, look into it, change its files. */
export function Workflow({ name }: { name: string }) {
  const me = useMe();
  const { query } = useRoute();
  const [drafts, setDrafts] = useState<Drafts>(new Map());
  const isStaff = can(me, "developer") || can(me, "operator");
  const workflow = useQuery({
    queryKey: ["workflow", name],
    queryFn: () => get<WorkflowAnswer>(`/api/workflows${pathOf(name)}`),
  });
  const findings = useQuery({
    queryKey: ["workflow", name, "findings"],
    queryFn: () => get<FindingsAnswer>(`/api/workflows${pathOf(name)}/findings`),
    enabled: isStaff,
  });
  const isEdited = drafts.size > 0;

  useEffect(() => {
    if (!isEdited) return;
    const warn = (event: BeforeUnloadEvent) => event.preventDefault();
    window.addEventListener("beforeunload", warn);
    return () => window.removeEventListener("beforeunload", warn);
  }, [isEdited]);

  if (!workflow.data) {
    return (
      <Page title={name}>
        <Loaded query={workflow} lines={8}>
          {() => null}
        </Loaded>
      </Page>
    );
  }
  const found = workflow.data;
  const spec = found.spec && readSpec(found.spec);
  const shown = findings.data?.findings ?? [];
  const tabs: { value: Tab; label: React.ReactNode; isThere: boolean }[] = [
    { value: "overview", label: "Overview", isThere: true },
    { value: "graph", label: "Graph", isThere: spec !== undefined },
    { value: "sequence", label: "Sequence", isThere: isStaff && found.kind === "conversation" },
    { value: "files", label: isEdited ? "Files (edited)" : "Files", isThere: spec !== undefined },
    {
      value: "findings",
      label: shown.length ? `Findings (${shown.length})` : "Findings",
      isThere: isStaff,
    },
    { value: "tests", label: "Tests", isThere: spec !== undefined },
    { value: "versions", label: "Versions", isThere: isStaff && found.owner !== "shipped" },
  ];
  const offered = tabs.filter(({ isThere }) => isThere);
  const tab = offered.find(({ value }) => value === query.get("tab"))?.value ?? "overview";

  return (
    <Page
      title={name}
      actions={
        <>
          {found.health?.problem && <Chip tone="wait">starts use an earlier version</Chip>}
          {found.health && <Health {...found.health} />}
          {spec && found.owner !== "shipped" && (
            <a href={`/api/packages${pathOf(name)}/zip`} download>
              Export
            </a>
          )}
        </>
      }
    >
      <Tabs
        label={`Parts of ${name}`}
        value={tab}
        tabs={offered}
        onChange={(value) => setQuery({ tab: value === "overview" ? null : value })}
      >
        {tab === "overview" && <Overview workflow={found} spec={spec} />}
        {tab === "graph" && spec && <GraphTab json={found.spec ?? {}} spec={spec} />}
        {tab === "sequence" && <SequenceTab name={name} />}
        {tab === "files" && spec && (
          <FilesTab
            workflow={found}
            findings={shown}
            drafts={drafts}
            onDraft={(path, draft) =>
              setDrafts((before) => {
                const others = [...before].filter(([other]) => other !== path);
                return new Map(draft ? [...others, [path, draft]] : others);
              })
            }
          />
        )}
        {tab === "findings" && <FindingsTab workflow={found} query={findings} />}
        {tab === "tests" && <TestsTab name={name} />}
        {tab === "versions" && <VersionsTab workflow={found} />}
      </Tabs>
    </Page>
  );
}
