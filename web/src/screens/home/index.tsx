import { Play, Plus } from "lucide-react";
import { useState } from "react";
import type { ReactNode } from "react";

import { can, useMe } from "../../app/session";
import { Link } from "../../app/url";
import {
  Bones, Button, Chip, Clock, Cost, Page, Panel, Problem, Section, StatusChip, Time,
} from "../../parts";
import type {
  DoctorAnswer, HealthAnswer, RequestsAnswer, RunsAnswer, WorkflowsAnswer,
} from "../../protocol/api";
import { splitPayload } from "../../requests/Payload";
import { StartDialog } from "../../start/StartDialog";
import { pathOf } from "../../transport/http";
import { useGet } from "../../transport/queries";
import { FirstSteps } from "./FirstSteps";
import styles from "./Home.module.css";

const WAITING = 5;
const RECENT = 8;
const LIVE = { refetchInterval: 5_000, staleTime: 0 };

/** What waits for the person, what ran last, and what can be started. */
export default function HomeScreen() {
  const me = useMe();
  const isStaff = can(me, "developer") || can(me, "operator");
  const [started, setStarted] = useState<{ workflow?: string } | null>(null);
  return (
    <Page
      title={isStaff ? "Home" : `Welcome, ${me.user}`}
      actions={
        <Button variant="main" icon={<Plus />} onClick={() => setStarted({})}>
          New run
        </Button>
      }
    >
      {can(me, "operator") && <Failures />}
      {can(me, "developer") && <FirstSteps />}
      <div className={styles.columns}>
        <div>
          <Waiting />
          <RecentRuns />
        </div>
        <Workflows onStart={(workflow) => setStarted({ workflow })} />
      </div>
      {started && <StartDialog {...started} onClose={() => setStarted(null)} />}
    </Page>
  );
}

/** What the server cannot use, as `weft doctor` says it. */
function Failures() {
  const doctor = useGet<DoctorAnswer>(["doctor"], "/api/doctor", { staleTime: 60_000 });
  const failures = doctor.data?.checks.filter(({ state }) => state === "fail") ?? [];
  if (failures.length === 0) return null;
  return (
    <Section title="Needs attention">
      {failures.map(({ subject, fact, remedy }) => (
        <p key={subject} className={styles.failure}>
          <Chip tone="bad">{subject}</Chip> {fact}
          {remedy && <code>{remedy}</code>}
        </p>
      ))}
    </Section>
  );
}

function Waiting() {
  const requests = useGet<RequestsAnswer>(["requests", "me"], "/api/requests?for=me", LIVE);
  // The newest are those that a person knows best; the inbox has all, oldest first.
  const items = requests.data?.items.toReversed() ?? [];
  if (requests.data && items.length === 0) return null;
  return (
    <Section
      title="Waiting for you"
      actions={items.length > WAITING && <Link to="/inbox">All {items.length}</Link>}
    >
      <List query={requests}>
        {items.slice(0, WAITING).map((request) => (
          <li key={`${request.run} ${request.id}`}>
            <div className={styles.text}>
              <Link to={`/runs${pathOf(request.run)}`}>
                {splitPayload(request.payload).title || `${request.agent} waits for your message`}
              </Link>
              <span>
                {request.agent} · for <Clock since={request.opened_at} />
              </span>
            </div>
            <Chip tone="wait">waiting</Chip>
          </li>
        ))}
      </List>
    </Section>
  );
}

function RecentRuns() {
  const runs = useGet<RunsAnswer>(["runs", "recent"], `/api/runs?limit=${RECENT}`, LIVE);
  const items = runs.data?.items ?? [];
  return (
    <Section title="Recent runs" actions={items.length > 0 && <Link to="/runs">All runs</Link>}>
      <List query={runs} empty="Nothing has run yet.">
        {items.map((row) => (
          <li key={row.run}>
            <div className={styles.text}>
              <Link to={`/runs${pathOf(row.run)}`}>
                {row.name || row.preview || `Run …${row.run.slice(-6)}`}
              </Link>
              <span>
                {row.workflow} · <Time at={row.started_at} />
                {row.cost_usd !== undefined && (
                  <>
                    {" · "}
                    <Cost usd={row.cost_usd} unpriced={row.unpriced_calls} />
                  </>
                )}
              </span>
            </div>
            <StatusChip row={row} />
          </li>
        ))}
      </List>
    </Section>
  );
}

function Workflows({ onStart }: { onStart: (workflow: string) => void }) {
  const workflows = useGet<WorkflowsAnswer>(["workflows"], "/api/workflows");
  return (
    <Section title="Workflows">
      <List query={workflows} empty="There is no workflow yet.">
        {workflows.data?.items.map(({ name, description, kind, health }) => (
          <li key={name}>
            <div className={styles.text}>
              <Link to={`/workflows${pathOf(name)}`}>{name}</Link>
              <span>{description}</span>
            </div>
            {health && <Health health={health} />}
            {kind !== "board" && (
              <Button icon={<Play />} aria-label={`Start ${name}`} onClick={() => onStart(name)}>
                Start
              </Button>
            )}
          </li>
        ))}
      </List>
    </Section>
  );
}

function Health({ health: { errors, warnings, problem } }: { health: HealthAnswer }) {
  if (problem) return <Chip tone="bad">cannot run</Chip>;
  if (errors) return <Chip tone="bad">{errors === 1 ? "1 error" : `${errors} errors`}</Chip>;
  if (warnings) return <Chip tone="wait">{warnings === 1 ? "1 warning" : `${warnings} warnings`}</Chip>;
  return <Chip tone="good">healthy</Chip>;
}

interface ListProps {
  query: { data: { items: unknown[] } | undefined; error: unknown; refetch: () => unknown };
  empty?: string;
  children: ReactNode;
}

function List({ query, empty, children }: ListProps) {
  if (!query.data && query.error) return <Problem error={query.error} onRetry={query.refetch} />;
  if (!query.data) return <Bones lines={4} />;
  if (query.data.items.length === 0) return <p className={styles.none}>{empty}</p>;
  return (
    <Panel>
      <ul className={styles.list}>{children}</ul>
    </Panel>
  );
}
