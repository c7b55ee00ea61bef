import { useMutation, useQueryClient } from "@tanstack/react-query";
import { Pause, Play, Zap } from "lucide-react";
import { useState } from "react";

import { Link } from "../../app/url";
import { LazySchemaForm } from "../../forms";
import {
  Bones, Button, Chip, Code, CopyButton, Dialog, Empty, Facts, Loaded, Problem, Segmented, Table,
} from "../../parts";
import type { ContinuedAnswer, FiringAnswer, StartAnswer, StartsAnswer, WorkflowAnswer } from "../../protocol/api";
import { ANY_INPUT } from "../../start/request";
import { pathOf, post } from "../../transport/http";
import { useGet, usePages } from "../../transport/queries";
import styles from "./Starts.module.css";
import { curlOf, describeStart } from "./words";

const REFRESH_MS = 10_000;
const PAGE = 20;

const KINDS: Record<StartAnswer["type"], string> = {
  schedule: "schedule",
  webhook: "webhook",
  form_submit: "form",
  database_condition: "document",
};

export function Starts() {
  const starts = useGet<StartsAnswer>(["starts"], "/api/starts", { refetchInterval: REFRESH_MS });
  return (
    <Loaded query={starts} lines={6}>
      {({ items }) =>
        items.length === 0 ? (
          <Empty
            title="Every workflow begins with a chat"
            action={<Link to="/workflows">Look at the workflows</Link>}
          >
            A workflow whose orchestrator declares a schedule, a webhook, a form or a condition on
            documents is listed here.
          </Empty>
        ) : (
          <ul className={styles.starts}>
            {items.map((start) => (
              <li key={start.id}>
                <Start start={start} />
              </li>
            ))}
          </ul>
        )
      }
    </Loaded>
  );
}

function Start({ start }: { start: StartAnswer }) {
  const queries = useQueryClient();
  const [isFiring, setFiring] = useState(false);
  const path = `/api/starts${pathOf(start.id)}`;
  const refresh = () => queries.invalidateQueries({ queryKey: ["starts"] });
  const pause = useMutation({
    mutationFn: () => post<StartAnswer>(`${path}/${start.paused ? "resume" : "pause"}`),
    onSuccess: refresh,
  });
  const fire = useMutation({
    mutationFn: (input: unknown) => post<ContinuedAnswer>(`${path}/fire`, input === undefined ? undefined : { input }),
    onSuccess: () => {
      setFiring(false);
      void refresh();
    },
  });
  const problem = pause.error ?? (isFiring ? null : fire.error);
  return (
    <article aria-label={start.id} className={styles.start}>
      <header>
        <h2>
          <Link to={`/workflows${pathOf(start.id)}`}>{start.id}</Link>
        </h2>
        <Chip tone={start.paused ? "plain" : "good"}>{start.paused ? "paused" : "on"}</Chip>
        <span className={styles.actions}>
          <Button
            icon={<Zap />}
            busy={fire.isPending}
            onClick={() => (start.type === "schedule" ? fire.mutate(undefined) : setFiring(true))}
          >
            Fire now
          </Button>
          <Button
            icon={start.paused ? <Play /> : <Pause />}
            busy={pause.isPending}
            onClick={() => pause.mutate()}
          >
            {start.paused ? "Resume" : "Pause"}
          </Button>
        </span>
      </header>
      <Facts
        values={{
          "Begins with": (
            <>
              <Chip tone="plain">{KINDS[start.type]}</Chip> {describeStart(start)}
            </>
          ),
          Next: start.next_at !== null && <Moment at={start.next_at} />,
          Last: start.last ? <Firing firing={start.last} /> : "never",
          Address: start.path !== null && (
            <span className={styles.address}>
              <Code>{location.origin + start.path}</Code>
              <CopyButton text={curlOf(location.origin, start)} label="Copy a curl command" />
            </span>
          ),
        }}
      />
      {fire.data && (
        <p role="status" className={styles.begun}>
          A run has begun: <Link to={`/runs${pathOf(fire.data.run)}`}>open it</Link>
        </p>
      )}
      {start.error && start.error !== start.last?.error && <Problem error={start.error} />}
      {problem !== null && <Problem error={problem} />}
      <Firings start={start} />
      <Dialog open={isFiring} title={`Fire ${start.id}`} onClose={() => setFiring(false)}>
        <FireForm start={start} busy={fire.isPending} error={fire.error} onSubmit={fire.mutate} />
      </Dialog>
    </article>
  );
}

interface FireFormProps {
  start: StartAnswer;
  busy: boolean;
  error: unknown;
  onSubmit: (input: unknown) => void;
}

/** What a form, a webhook or a document would bring. */
function FireForm({ start, ...form }: FireFormProps) {
  const workflow = useGet<WorkflowAnswer>(["workflow", start.id], `/api/workflows${pathOf(start.id)}`, {
    enabled: start.type === "form_submit",
  });
  if (workflow.isLoading) return <Bones lines={3} />;
  const schema = workflow.data?.start ?? ANY_INPUT;
  return <LazySchemaForm schema={schema} submitLabel="Fire" {...form} />;
}

function Firings({ start }: { start: StartAnswer }) {
  const [isOpen, setOpen] = useState(false);
  return (
    <details onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>Log</summary>
      {isOpen && <FiringLog start={start} />}
    </details>
  );
}

function FiringLog({ start }: { start: StartAnswer }) {
  const [which, setWhich] = useState("begun");
  const path = `/api/starts${pathOf(start.id)}/firings?limit=${PAGE}&refused=${which === "refused"}`;
  const log = usePages<FiringAnswer>(["starts", "log", path], path);
  return (
    <div className={styles.log}>
      {start.type === "webhook" && (
        <Segmented
          label="Which requests"
          value={which}
          options={[
            { value: "begun", label: "Accepted" },
            { value: "refused", label: "Refused" },
          ]}
          onChange={setWhich}
        />
      )}
      <Loaded query={log} lines={3}>
        {(items) => (
          <Table
            label={`Log of ${start.id}`}
            items={items}
            keyOf={(_, index) => index}
            empty="Nothing has happened yet."
            columns={[
              { title: "Time", cell: ({ at }) => <Moment at={at} /> },
              { title: "By", cell: byWhat },
              { title: "Of", cell: subjectOf },
              { title: "Result", cell: (firing) => <Outcome firing={firing} /> },
            ]}
          />
        )}
      </Loaded>
      {log.hasNextPage && (
        <Button variant="bare" busy={log.isFetchingNextPage} onClick={() => log.fetchNextPage()}>
          Show older entries
        </Button>
      )}
    </div>
  );
}

function subjectOf({ due, delivery, document }: FiringAnswer) {
  if (due !== undefined) return <Moment at={due} />;
  return <Code>{delivery ?? document ?? "–"}</Code>;
}

function Firing({ firing }: { firing: FiringAnswer }) {
  return (
    <>
      <Moment at={firing.at} /> by {byWhat(firing)}: <Outcome firing={firing} />
    </>
  );
}

function byWhat({ by }: FiringAnswer): string {
  return by === "manual" ? "hand" : by;
}

function Outcome({ firing: { run, error } }: { firing: FiringAnswer }) {
  if (run) return <Link to={`/runs${pathOf(run)}`}>run …{run.slice(-6)}</Link>;
  return <span className={styles.error}>{error || "no run"}</span>;
}

/** A moment with its day, in the zone of the reader. */
function Moment({ at }: { at: number }) {
  const moment = new Date(at);
  const text = moment.toLocaleString([], { dateStyle: "medium", timeStyle: "short" });
  return <time dateTime={moment.toISOString()}>{text}</time>;
}
