import { GitFork, Plus } from "lucide-react";
import { useState } from "react";

import { useKeys } from "../../app/keys";
import { can, useMe } from "../../app/session";
import { Link, setQuery, useRoute } from "../../app/url";
import {
  Bones, Button, Clock, Cost, Duration, Empty, Page, Problem, Rows, Segmented, StatusChip, Time, Tokens,
  useActionDialog,
} from "../../parts";
import type { RowAnswer, RunsAnswer, WorkflowsAnswer } from "../../protocol/api";
import { StartDialog } from "../../start/StartDialog";
import { pathOf, post } from "../../transport/http";
import { useGet, usePages } from "../../transport/queries";
import { withNewest } from "./rows";
import styles from "./Runs.module.css";

const PAGE = 100;
const REFRESH_MS = 4_000;

const STATUSES = [
  { value: "", label: "All" },
  { value: "running", label: "Working" },
  { value: "waiting", label: "Waiting" },
  { value: "ended", label: "Ended" },
];

/** All runs that the caller may see, newest first; the filters are in the address. */
export default function RunsScreen() {
  const me = useMe();
  const isStaff = can(me, "developer") || can(me, "operator");
  const [isStarting, setStarting] = useState(false);
  const [dialog, ask] = useActionDialog("runs");
  const { query } = useRoute();
  useKeys({ n: ["Start a run", () => setStarting(true)] });

  const filters = new URLSearchParams({ limit: String(PAGE) });
  for (const name of ["workflow", "status", "user"]) {
    const value = query.get(name);
    if (value) filters.set(name, value);
  }
  const address = `/api/runs?${filters}`;
  const older = usePages<RowAnswer>(["runs", "pages", address], address, { staleTime: Infinity });
  // Only the newest are read again and again.
  const newest = useGet<RunsAnswer>(["runs", "newest", address], address, {
    refetchInterval: REFRESH_MS,
  });
  const rows = withNewest(older.data ?? [], newest.data);
  const isFiltered = filters.size > 1;
  const stop = (row: RowAnswer) =>
    ask({
      title: "Stop this run?",
      action: "Stop",
      content: `“${titleOf(row)}” ends now. What it has done so far stays, and can be forked.`,
      perform: () => post(`/api/runs${pathOf(row.run)}/cancel`, { mode: "now" }),
    });

  return (
    <Page
      title="Runs"
      actions={
        <Button variant="main" icon={<Plus />} onClick={() => setStarting(true)}>
          New run
        </Button>
      }
    >
      <Filters query={query} isStaff={isStaff} />
      {newest.error !== null && <Problem error={newest.error} onRetry={() => newest.refetch()} />}
      {older.isPending && !older.error && <Bones lines={8} />}
      {older.data && rows.length === 0 && (
        <Empty
          title={isFiltered ? "No run fits these filters" : "No runs yet"}
          action={
            isFiltered ? (
              <Button onClick={() => setQuery({ workflow: null, status: null, user: null })}>
                Show all runs
              </Button>
            ) : (
              <Button variant="main" onClick={() => setStarting(true)}>Start a run</Button>
            )
          }
        >
          {!isFiltered && "A run appears here as soon as a workflow starts."}
        </Empty>
      )}
      {rows.length > 0 && (
        <div className={styles.table}>
          <Rows
            label="Runs"
            items={rows}
            keyOf={({ run }) => run}
            estimate={61}
            render={(row) => <Row row={row} isStaff={isStaff} onStop={() => stop(row)} />}
          />
          {older.hasNextPage && (
            <Button variant="bare" busy={older.isFetchingNextPage} onClick={() => older.fetchNextPage()}>
              Show older runs
            </Button>
          )}
        </div>
      )}
      {isStarting && <StartDialog onClose={() => setStarting(false)} />}
      {dialog}
    </Page>
  );
}

function Filters({ query, isStaff }: { query: URLSearchParams; isStaff: boolean }) {
  const workflows = useGet<WorkflowsAnswer>(["workflows"], "/api/workflows");
  const workflow = query.get("workflow") ?? "";
  const names = new Set(workflows.data?.items.map(({ name }) => name));
  if (workflow) names.add(workflow);
  return (
    <div className={styles.filters}>
      <Segmented
        label="Status"
        value={query.get("status") ?? ""}
        options={STATUSES}
        onChange={(status) => setQuery({ status: status || null })}
      />
      <select
        aria-label="Workflow"
        value={workflow}
        onChange={(event) => setQuery({ workflow: event.target.value || null })}
      >
        <option value="">All workflows</option>
        {[...names].map((name) => (
          <option key={name}>{name}</option>
        ))}
      </select>
      {isStaff && (
        <input
          type="search"
          aria-label="User"
          placeholder="All users"
          value={query.get("user") ?? ""}
          onChange={(event) => setQuery({ user: event.target.value || null })}
        />
      )}
    </div>
  );
}

interface RowProps {
  row: RowAnswer;
  isStaff: boolean;
  onStop: () => void;
}

function Row({ row, isStaff, onStop }: RowProps) {
  return (
    <div className={`${styles.row} ${row.turns === undefined ? styles.short : ""}`}>
      <StatusChip row={row} />
      <div className={styles.text}>
        <Link to={`/runs${pathOf(row.run)}`}>{titleOf(row)}</Link>
        <span className={styles.note}>
          {row.workflow}
          {isStaff && ` · ${row.user}`}
          {row.parent && (
            <>
              {" · "}
              <GitFork aria-hidden="true" /> fork of …{row.parent.slice(-6)}
            </>
          )}
          {row.outcome === "failed" && row.reason && ` · ${row.reason}`}
        </span>
      </div>
      <span className={styles.note}>
        <Time at={row.started_at} />
      </span>
      <span className={styles.note}>
        <Elapsed row={row} />
      </span>
      {row.turns !== undefined && (
        <>
          <span className={styles.figure}>
            {row.turns} {row.turns === 1 ? "turn" : "turns"}
          </span>
          <span className={styles.figure}>
            <Tokens input={row.input_tokens} output={row.output_tokens} unmetered={row.unmetered_calls} />{" "}
            tokens
          </span>
          <span className={styles.figure}>
            <Cost usd={row.cost_usd} unpriced={row.unpriced_calls} />
          </span>
        </>
      )}
      <span className={styles.actions}>
        {row.status !== "ended" && (
          <Button variant="bare" aria-label={`Stop ${titleOf(row)}`} onClick={onStop}>Stop</Button>
        )}
      </span>
    </div>
  );
}

function Elapsed({ row }: { row: RowAnswer }) {
  if (row.status === "ended") {
    return (
      <>
        took <Duration ms={row.changed_at - row.started_at} />
      </>
    );
  }
  if (row.status === "waiting") {
    return (
      <>
        waits for <Clock since={row.changed_at} />
      </>
    );
  }
  return (
    <>
      works for <Clock since={row.started_at} />
    </>
  );
}

function titleOf(row: RowAnswer): string {
  return row.name || row.preview || `Run …${row.run.slice(-6)}`;
}
