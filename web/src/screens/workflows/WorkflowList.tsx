import { useQuery } from "@tanstack/react-query";
import { Upload } from "lucide-react";
import { useRef, useState } from "react";
import type { DragEvent } from "react";

import { can, useMe } from "../../app/session";
import { go, Link } from "../../app/url";
import { ChangeDialog } from "../../packages/ChangeDialog";
import { Health } from "../../packages/FindingList";
import { countOf } from "../../packages/findings";
import { Button, Empty, Loaded, Page, Table } from "../../parts";
import type { PackageChangeAnswer, WorkflowAnswer, WorkflowsAnswer } from "../../protocol/api";
import { get, pathOf, upload } from "../../transport/http";
import styles from "./workflows.module.css";
import { ORIGINS, TRIGGERS, WAYS } from "./words";

/** All workflows, and the way to bring one in: a zip file that is dropped anywhere. */
export function WorkflowList() {
  const me = useMe();
  const [file, setFile] = useState<File | null>(null);
  const [isOver, setOver] = useState(false);
  const input = useRef<HTMLInputElement>(null);
  const workflows = useQuery({
    queryKey: ["workflows"],
    queryFn: () => get<WorkflowsAnswer>("/api/workflows"),
  });
  const canImport = can(me, "operator");

  function drop(event: DragEvent) {
    event.preventDefault();
    setOver(false);
    setFile(event.dataTransfer.files[0] ?? null);
  }

  return (
    <div
      className={`${styles.list} ${isOver ? styles.over : ""}`}
      onDragOver={(event) => {
        if (!canImport || !event.dataTransfer.types.includes("Files")) return;
        event.preventDefault();
        setOver(true);
      }}
      onDragLeave={(event) => {
        if (!event.currentTarget.contains(event.relatedTarget as Node | null)) setOver(false);
      }}
      onDrop={canImport ? drop : undefined}
    >
      <Page
        title="Workflows"
        actions={
          canImport && (
            <>
              <input
                ref={input}
                type="file"
                accept=".zip,application/zip"
                hidden
                aria-label="Package to import"
                onChange={(event) => {
                  setFile(event.target.files?.[0] ?? null);
                  event.target.value = "";
                }}
              />
              <Button icon={<Upload />} onClick={() => input.current?.click()}>
                Import a package
              </Button>
            </>
          )
        }
      >
        <Loaded query={workflows} lines={6}>
          {({ items }) =>
            items.length ? (
              <Table
                label="Workflows"
                items={items}
                keyOf={({ name }) => name}
                columns={columns.filter(({ isFor }) => !isFor || items.some(isFor))}
              />
            ) : (
              <Empty title="There is no workflow yet" action={<Link to="/design">Design one</Link>}>
                A workflow is a package of files. Design one from a description, or import a zip file.
              </Empty>
            )
          }
        </Loaded>
        {canImport && (
          <p className={styles.note}>
            Drop a zip file anywhere on this page to import it. You see what it would change first.
          </p>
        )}
      </Page>
      {file && <ImportDialog file={file} onClose={() => setFile(null)} />}
    </div>
  );
}

// What a column shows may be missing for end users.
const columns = [
  {
    title: "Workflow",
    cell: ({ name, description }: WorkflowAnswer) => (
      <div className={styles.named}>
        <Link to={`/workflows${pathOf(name)}`}>{name}</Link>
        <p>{description}</p>
      </div>
    ),
  },
  { title: "Way", cell: ({ kind }: WorkflowAnswer) => WAYS[kind] },
  {
    title: "Started by",
    cell: (row: WorkflowAnswer) => (row.kind === "conversation" ? TRIGGERS[row.trigger] : ""),
  },
  {
    title: "From",
    cell: ({ owner }: WorkflowAnswer) => owner && ORIGINS[owner],
    isFor: ({ owner }: WorkflowAnswer) => owner !== undefined,
  },
  {
    title: "Check",
    cell: ({ health }: WorkflowAnswer) => health && <Health {...health} />,
    isFor: ({ health }: WorkflowAnswer) => health !== undefined,
  },
];

interface ImportDialogProps {
  file: File;
  onClose: () => void;
}

function ImportDialog({ file, onClose }: ImportDialogProps) {
  return (
    <ChangeDialog
      title={`Import ${file.name}`}
      verb="Import"
      change={({ dryRun, force }) =>
        upload<PackageChangeAnswer>(`/api/packages?dry_run=${dryRun}&force=${force}`, zip(file))
      }
      consent={({ lost }) =>
        lost.length
          ? `Replace ${countOf(lost.length, "file")} that somebody has changed here: ${lost.join(", ")}`
          : null
      }
      onDone={({ name }) => go(`/workflows${pathOf(name)}`)}
      onClose={onClose}
    />
  );
}

/** The content of a file as a zip file; systems name its type in several ways. */
function zip(file: File): Blob {
  return new Blob([file], { type: "application/zip" });
}
