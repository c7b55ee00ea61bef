import { useMutation, useQueries, useQueryClient } from "@tanstack/react-query";
import { CircleCheck, CircleDashed, Play } from "lucide-react";
import { useEffect, useState } from "react";
import type { ReactNode } from "react";

import { useMe } from "../../app/session";
import { go, Link } from "../../app/url";
import { Button, Problem } from "../../parts";
import type {
  ContinuedAnswer, EventsAnswer, RecordingsAnswer, RowAnswer, RunsAnswer, VersionsAnswer, WorkflowsAnswer,
} from "../../protocol/api";
import { get, pathOf, post } from "../../transport/http";
import { useGet } from "../../transport/queries";
import styles from "./FirstSteps.module.css";
import { stepsIn, STEPS } from "./steps";
import type { Step } from "./steps";

const KEY = "weft.steps";
const HIDDEN = "hidden";

// The steps are looked for in the newest runs; what was found once is remembered.
const RUNS = 6;
const EVENTS = 300;
const PACKAGES = 12;

/** The first minutes without a key; gone when all steps are done or the person hides it. */
export function FirstSteps() {
  const [known, setKnown] = useState(readKnown);
  const [isNew] = useState(() => STEPS.some((step) => !known.has(step)));
  if (!isNew || known.has(HIDDEN)) return null;

  function hide() {
    remember([...readKnown(), HIDDEN]);
    setKnown(readKnown());
  }

  return <Steps known={known} onHide={hide} />;
}

function Steps({ known, onHide }: { known: ReadonlySet<string>; onHide: () => void }) {
  const queries = useQueryClient();
  const { done, played } = useSteps(known);
  const recordings = useGet<RecordingsAnswer>(["recordings"], "/api/recordings");
  const play = useMutation({
    mutationFn: (name: string) => post<ContinuedAnswer>(`/api/recordings${pathOf(name)}`),
    onSuccess: ({ run }) => {
      void queries.invalidateQueries({ queryKey: ["runs"] });
      go(`/runs${pathOf(run)}?at=1&play=1`);
    },
  });
  const recording = recordings.data?.items[0];
  const fork = played && (
    <Link to={`/runs${pathOf(played.run)}`}>{played.preview || played.workflow}</Link>
  );
  const texts: Record<Step, [title: string, how: ReactNode]> = {
    played: ["Play a recorded run", "See who had the turn, why it was handed on, and every prompt."],
    forked: ["Fork it", fork ? <>Open {fork} and repeat one of its turns.</> : "Repeat one turn as a run of your own."],
    changed: ["Change a value in a fork", "Let the sample model go on from there, without a key."],
    answered: ["Answer an agent", <>Start a workflow below; what its agents ask you is also in your <Link to="/inbox">inbox</Link>.</>],
    installed: ["Make it yours", <><Link to="/design">Design a workflow</Link>, or drop a package on <Link to="/workflows">Workflows</Link>.</>],
  };
  return (
    <section aria-labelledby="first-steps" className={styles.card}>
      <div className={styles.play}>
        <h2 id="first-steps">See a run from the inside</h2>
        <p>
          A recorded conversation with real agents, played event by event. It needs no key, and
          nothing is sent anywhere.
        </p>
        {recording && (
          <Button
            variant="main"
            icon={<Play />}
            busy={play.isPending}
            onClick={() => play.mutate(recording.name)}
          >
            Play the recorded run
          </Button>
        )}
        {recording && <p className={styles.note}>{recording.title}</p>}
        {(play.error ?? recordings.error) && <Problem error={play.error ?? recordings.error} />}
      </div>
      <div>
        <header className={styles.header}>
          <h3>
            First steps · {STEPS.filter((step) => done.has(step)).length} of {STEPS.length}
          </h3>
          <Button variant="bare" onClick={onHide}>Hide</Button>
        </header>
        <ol className={styles.steps}>
          {STEPS.map((step) => (
            <li key={step} className={done.has(step) ? styles.done : ""}>
              {done.has(step) ? <CircleCheck aria-label="Done" /> : <CircleDashed aria-label="To do" />}
              <div>
                <strong>{texts[step][0]}</strong>
                {!done.has(step) && <p>{texts[step][1]}</p>}
              </div>
            </li>
          ))}
        </ol>
      </div>
    </section>
  );
}

/** Which steps the person has taken, as the newest runs and the workflows show. */
function useSteps(known: ReadonlySet<string>): { done: ReadonlySet<string>; played?: RowAnswer } {
  const me = useMe();
  const runs = useGet<RunsAnswer>(
    ["runs", "of", me.user],
    `/api/runs?user=${encodeURIComponent(me.user)}&limit=${RUNS}`,
    { staleTime: 0 },
  );
  const rows = runs.data?.items ?? [];
  const events = useQueries({
    queries: rows.map(({ run, seq }) => ({
      queryKey: ["events", run, seq],
      queryFn: () => get<EventsAnswer>(`/api/runs${pathOf(run)}/events?limit=${EVENTS}`),
      staleTime: Infinity,
    })),
  });
  const workflows = useGet<WorkflowsAnswer>(["workflows"], "/api/workflows");
  // A package that was installed or changed here has versions.
  const versions = useQueries({
    queries: (workflows.data?.items ?? []).slice(0, PACKAGES).map(({ name }) => ({
      queryKey: ["workflow", name, "first version"],
      queryFn: () => get<VersionsAnswer>(`/api/packages${pathOf(name)}/versions?limit=1`),
    })),
  });
  const steps = events.map(({ data }) => stepsIn(data?.items ?? [], me.user));
  const found: string[] = steps.flat();
  if (versions.some(({ data }) => data?.items.length)) found.push("installed");
  const done = new Set([...known, ...found]);
  const text = [...done].join(" ");
  useEffect(() => remember(text.split(" ")), [text]);
  return { done, played: rows.find((_, index) => steps[index]?.includes("played")) };
}

function readKnown(): ReadonlySet<string> {
  return new Set(localStorage.getItem(KEY)?.split(" ") ?? []);
}

function remember(steps: readonly string[]): void {
  localStorage.setItem(KEY, steps.join(" "));
}
