import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useId, useState } from "react";

import { Bones, Button, Dialog, Problem } from "../parts";
import type { PackageChangeAnswer } from "../protocol/api";
import styles from "./ChangeDialog.module.css";
import { Diff } from "./Diff";
import { FindingList, Health } from "./FindingList";
import { countOf } from "./findings";

export interface ChangeDialogProps {
  title: string;
  /** What the button says that makes the change. */
  verb: string;
  change: (options: { dryRun: boolean; force: boolean }) => Promise<PackageChangeAnswer>;
  /** What the change would do that must be agreed to; null if nothing. */
  consent?: (planned: PackageChangeAnswer) => string | null;
  onDone: (done: PackageChangeAnswer) => void;
  onClose: () => void;
}

/** Show what a change of a package would do, then do it. */
export function ChangeDialog(props: ChangeDialogProps) {
  const { title, verb, change, consent, onDone, onClose } = props;
  const id = useId();
  const queries = useQueryClient();
  const [isAgreed, setAgreed] = useState(false);
  const [isBusy, setBusy] = useState(false);
  const [problem, setProblem] = useState<unknown>(null);
  const planned = useQuery({
    queryKey: ["change", id],
    queryFn: () => change({ dryRun: true, force: false }),
    retry: false,
    gcTime: 0,
    staleTime: Infinity,
  });
  const needed = planned.data ? (consent?.(planned.data) ?? null) : null;

  async function apply() {
    setBusy(true);
    setProblem(null);
    try {
      const done = await change({ dryRun: false, force: isAgreed });
      for (const key of ["workflows", "workflow", "doctor"]) {
        void queries.invalidateQueries({ queryKey: [key] });
      }
      onDone(done);
    } catch (error) {
      setProblem(error);
      setBusy(false);
    }
  }

  return (
    <Dialog
      open
      title={title}
      onClose={onClose}
      footer={
        <>
          <Button variant="bare" onClick={onClose}>
            Cancel
          </Button>
          <Button
            variant="main"
            busy={isBusy}
            disabled={!planned.data || isUnchanged(planned.data) || (needed !== null && !isAgreed)}
            onClick={apply}
          >
            {verb}
          </Button>
        </>
      }
    >
      <div className={styles.body}>
        {planned.isPending && <Bones />}
        {planned.error && <Problem error={planned.error} onRetry={() => planned.refetch()} />}
        {problem !== null && <Problem error={problem} />}
        {planned.data && <ChangeSummary change={planned.data} />}
        {needed && (
          <label className={styles.consent}>
            <input
              type="checkbox"
              checked={isAgreed}
              onChange={(event) => setAgreed(event.target.checked)}
            />
            {needed}
          </label>
        )}
      </div>
    </Dialog>
  );
}

function isUnchanged(change: PackageChangeAnswer): boolean {
  return !change.added.length && !change.changed.length && !change.removed.length;
}

function ChangeSummary({ change }: { change: PackageChangeAnswer }) {
  const errors = change.findings.filter((finding) => finding.severity === "error").length;
  const files = [
    ...change.added.map((path) => `+ ${path}`),
    ...change.changed.map((path) => `~ ${path}`),
    ...change.removed.map((path) => `- ${path}`),
  ];
  return (
    <>
      <p className={styles.line}>
        <strong>{change.name}</strong>
        {isUnchanged(change) ? " is the same already." : `: ${fileCounts(change)}`}
        <Health errors={errors} warnings={change.findings.length - errors} />
      </p>
      {change.fixed.length > 0 && (
        <ul>
          {change.fixed.map((line) => (
            <li key={line}>{line}</li>
          ))}
        </ul>
      )}
      {change.findings.length > 0 && <FindingList findings={change.findings} name={change.name} />}
      {files.length > 0 && (
        <details>
          <summary>Files</summary>
          <pre>{files.join("\n")}</pre>
        </details>
      )}
      {change.diff && (
        <details open={!change.created}>
          <summary>Differences</summary>
          <Diff text={change.diff} label={`Differences in ${change.name}`} />
        </details>
      )}
    </>
  );
}

function fileCounts(change: PackageChangeAnswer): string {
  if (change.created) return `a new package of ${countOf(change.added.length, "file")}. `;
  const parts = [
    change.added.length && `${change.added.length} added`,
    change.changed.length && `${change.changed.length} changed`,
    change.removed.length && `${change.removed.length} removed`,
  ];
  return `${parts.filter(Boolean).join(", ")}. `;
}
