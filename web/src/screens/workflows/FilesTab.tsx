import { keepPreviousData, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { FilePlus } from "lucide-react";
import { useEffect, useState } from "react";

import { setQuery, useRoute } from "../../app/url";
import { FileText } from "../../packages/FileText";
import { FileTree } from "../../packages/FileTree";
import { countOf, fileOf } from "../../packages/findings";
import { ActionDialog, Bones, Button, Empty, Problem, Splitter, TextField } from "../../parts";
import type {
  ContentAnswer,
  FilesAnswer,
  FindingAnswer,
  PackageChangeAnswer,
  WorkflowAnswer,
} from "../../protocol/api";
import { ApiProblem, get, pathOf, put } from "../../transport/http";
import styles from "./workflows.module.css";

/** What was typed, and the digest of the file it was typed into; null: the file is new. */
interface Draft {
  text: string;
  digest: string | null;
}

export type Drafts = ReadonlyMap<string, Draft>;

interface FilesTabProps {
  workflow: WorkflowAnswer;
  /** Those of the package as it is saved. */
  findings: readonly FindingAnswer[];
  drafts: Drafts;
  onDraft: (path: string, draft: Draft | null) => void;
}

/** The files of a package with their findings; what is typed is checked at once. */
export function FilesTab({ workflow, findings, drafts, onDraft }: FilesTabProps) {
  const { name, owner } = workflow;
  const { query } = useRoute();
  const [isAdding, setAdding] = useState(false);
  const files = useQuery({
    queryKey: ["workflow", name, "files"],
    queryFn: () => get<FilesAnswer>(`/api/workflows${pathOf(name)}/files`),
  });
  if (files.error) return <Problem error={files.error} onRetry={() => files.refetch()} />;
  if (!files.data) return <Bones lines={8} />;
  const paths = [...new Set([...files.data.items.map(({ path }) => path), ...drafts.keys()])];
  const selected = query.get("file") ?? paths.find((path) => path === "agents.json") ?? paths[0];
  const canEdit = owner !== "shipped";
  return (
    <>
      <Splitter
        name="the files"
        start={25}
        left={
          <>
            <FileTree
              paths={paths}
              name={name}
              findings={findings}
              selected={selected ?? ""}
              changed={new Set(drafts.keys())}
              onSelect={(path) => setQuery({ file: path, line: null })}
            />
            {canEdit && (
              <Button variant="bare" icon={<FilePlus />} onClick={() => setAdding(true)}>
                New file
              </Button>
            )}
          </>
        }
        right={
          selected === undefined ? (
            <Empty title="This package has no files" />
          ) : (
            <OpenFile
              key={selected}
              workflow={workflow}
              path={selected}
              findings={findings}
              line={Number(query.get("line")) || undefined}
              draft={drafts.get(selected)}
              onDraft={canEdit ? (draft) => onDraft(selected, draft) : null}
            />
          )
        }
      />
      {isAdding && (
        <ActionDialog
          title="New file"
          action="Create"
          perform={async (fields) => {
            const path = String(fields.get("path")).trim();
            if (!paths.includes(path)) onDraft(path, { text: "", digest: null });
            setQuery({ file: path, line: null });
          }}
          onClose={() => setAdding(false)}
        >
          <TextField
            name="path"
            label="Path in the package"
            hint="It is written when you save it."
            placeholder="tools/look_up.py"
            required
          />
        </ActionDialog>
      )}
    </>
  );
}

interface OpenFileProps {
  workflow: WorkflowAnswer;
  path: string;
  findings: readonly FindingAnswer[];
  line: number | undefined;
  draft: Draft | undefined;
  /** Null where the package cannot be edited. */
  onDraft: ((draft: Draft | null) => void) | null;
}

function OpenFile({ workflow, path, findings, line, draft, onDraft }: OpenFileProps) {
  const { name, spec } = workflow;
  const queries = useQueryClient();
  const url = `/api/workflows${pathOf(name)}/files${pathOf(...path.split("/"))}`;
  const file = useQuery({
    queryKey: ["workflow", name, "file", path],
    queryFn: () => get<ContentAnswer>(url),
    enabled: draft?.digest !== null,
  });
  const text = draft?.text ?? file.data?.content ?? undefined;
  const typed = useDelayed(draft);
  const check = useQuery({
    queryKey: ["check", name, path, typed],
    queryFn: () => put<PackageChangeAnswer>(`${url}?dry_run=true`, bodyOf(typed)),
    enabled: typed !== undefined && typed === draft,
    placeholderData: keepPreviousData,
    retry: false,
    gcTime: 0,
  });
  const save = useMutation({
    mutationFn: (force: boolean) => put<PackageChangeAnswer>(`${url}?force=${force}`, bodyOf(draft)),
    onSuccess: async () => {
      await queries.invalidateQueries({ queryKey: ["workflow", name] });
      void queries.invalidateQueries({ queryKey: ["workflows"] });
      onDraft?.(null);
    },
  });
  const problem = save.error ?? (draft ? check.error : null);
  const all = draft && check.data ? check.data.findings : findings;
  const here = all.filter((finding) => fileOf(finding, name) === path).length;

  function discard() {
    save.reset();
    onDraft?.(null);
    if (draft?.digest === null) setQuery({ file: null });
    else void file.refetch();
  }

  function edit(now: string) {
    const digest = draft ? draft.digest : (file.data?.digest ?? null);
    const isSame = digest !== null && now === file.data?.content;
    onDraft?.(isSame ? null : { text: now, digest });
  }

  if (file.error && !draft) return <Problem error={file.error} onRetry={() => file.refetch()} />;
  if (file.data?.content === null) return <Empty title="This file is not text" />;
  if (text === undefined) return <Bones lines={8} />;
  return (
    <>
      {problem && (
        <Problem
          error={problem}
          actions={
            <>
              {isConflict(problem) && <Button onClick={discard}>Read the present file</Button>}
              {save.error instanceof ApiProblem && save.error.findings.length > 0 && (
                <Button onClick={() => save.mutate(true)}>Save with errors</Button>
              )}
            </>
          }
        />
      )}
      <FileText
        path={path}
        text={text}
        name={name}
        findings={all}
        tools={spec?.tools}
        line={line}
        onSave={() => draft && save.mutate(false)}
        onChange={onDraft ? edit : undefined}
        bar={
          <>
            <span role="status" className={styles.state}>
              {onDraft === null && "This package comes with Weft and cannot be edited here. "}
              {here ? `${countOf(here, "finding")} in this file` : "No findings in this file"}
              {all.length > here && `, ${all.length - here} in others`}
            </span>
            {draft && (
              <>
                <Button variant="bare" onClick={discard}>
                  Discard
                </Button>
                <Button variant="main" busy={save.isPending} onClick={() => save.mutate(false)}>
                  Save
                </Button>
              </>
            )}
          </>
        }
      />
    </>
  );
}

function bodyOf(draft: Draft | undefined) {
  return { content: draft?.text ?? "", digest: draft?.digest ?? null };
}

function isConflict(error: unknown): boolean {
  return error instanceof ApiProblem && error.status === 409;
}

/** A value as it was when it last did not change for half a second. */
function useDelayed<T>(value: T): T {
  const [delayed, setDelayed] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setDelayed(value), 500);
    return () => clearTimeout(timer);
  }, [value]);
  return delayed;
}
