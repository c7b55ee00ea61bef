import { keepPreviousData, useQuery } from "@tanstack/react-query";

import { Link, setQuery, useRoute } from "../../app/url";
import { Bones, Chip, Page, Problem, Tabs } from "../../parts";
import type { PackageAnswer, PlanAnswer } from "../../protocol/api";
import { RunQuestion } from "../../requests/RunQuestion";
import { eventsOf, itemsAt, openAt, requestAt, statusAt } from "../../run/select";
import { useRun } from "../../run/store";
import type { Request } from "../../run/view";
import { get, pathOf } from "../../transport/http";
import styles from "./design.module.css";
import { Package } from "./Package";
import { Plan } from "./Plan";
import { Steps } from "./Steps";

type Tab = "questions" | "plan" | "files";

/** A design: the questions of its run, the plan and its rounds, and the package made from it. */
export function Design({ run }: { run: string }) {
  const { query } = useRoute();
  const { store, state } = useRun(run);
  const { view, connection } = state;
  const { seq } = view;
  // What the server keeps of a design changes when the run begins to work, waits or ends.
  const phase = view.phases.last(seq)?.seq ?? 0;
  const round = query.get("round");
  const asked = eventsOf(view, "RequestOpened", seq).flatMap(
    ({ data }) => requestAt(view, data.id, seq) ?? [],
  );
  const plan = useQuery({
    queryKey: ["plan", run, phase, round],
    queryFn: () => get<PlanAnswer>(`/api/plans${pathOf(run)}${round ? `?round=${round}` : ""}`),
    enabled: asked.some(isDecision),
    placeholderData: keepPreviousData,
  });
  const pack = useQuery({
    queryKey: ["package", run],
    queryFn: () => get<PackageAnswer>(`/api/runs${pathOf(run)}/package`),
    enabled: phase > 0,
    staleTime: Infinity,
  });
  const name = plan.data ? nameOf(plan.data) : "";

  if (connection.state === "refused" && seq === 0) {
    return (
      <Page title="Design">
        <Problem error={connection.problem} actions={<Link to="/design">Show all designs</Link>} />
      </Page>
    );
  }
  if (!state.isCaughtUp && seq === 0) return <Bones lines={8} />;

  const { status, outcome, reason } = statusAt(view, seq);
  const decision = openAt(view, seq).find(isDecision);
  const isOpen = ({ id }: Request) => !view.closed.has(id);
  const questions = asked.filter(
    (each) => !isDecision(each) && !isPromotion(each) && (each.kind === "ui" || isOpen(each)),
  );
  const open = questions.filter(isOpen);
  const packages = plan.data?.packages ?? [];
  const usual: Tab = open.length || !plan.data ? "questions" : packages.length ? "files" : "plan";
  const tab = (query.get("tab") as Tab | null) ?? usual;
  const tone = { new: "plain", working: "live", waiting: "wait", ended: "plain" } as const;

  return (
    <Page
      title={name || "Design"}
      actions={
        <>
          <Chip tone={outcome === "completed" ? "good" : outcome === "failed" ? "bad" : tone[status]}>
            {outcome ?? status}
          </Chip>
          {plan.data && plan.data.open.length > 0 && <Chip tone="wait">skeleton</Chip>}
          <Link to={`/runs${pathOf(run)}`}>Open the run</Link>
        </>
      }
    >
      {outcome === "failed" && (
        <Problem
          error={new Error(reason || "the design failed")}
          actions={<Link to={`/runs${pathOf(run)}`}>Repeat the step in its run</Link>}
        />
      )}
      <div className={styles.columns}>
        <Steps view={view} spec={pack.data?.spec ?? {}} />
        <Tabs
          label="Parts of the design"
          value={tab}
          tabs={[
            { value: "questions", label: open.length ? `Questions (${open.length} open)` : "Questions" },
            { value: "plan", label: "Plan" },
            { value: "files", label: "Files" },
          ]}
          onChange={(value) => setQuery({ tab: value })}
        >
          {plan.error && <Problem error={plan.error} onRetry={() => plan.refetch()} />}
          {tab === "questions" && (
            <div className={styles.questions} role="region" tabIndex={0} aria-label="Questions">
              <h2 className="unseen">Questions</h2>
              {itemsAt(view, seq).map(
                (item) =>
                  item.kind === "user" &&
                  item.text && (
                    <blockquote key={item.seq} className={styles.said}>
                      {item.text}
                    </blockquote>
                  ),
              )}
              {questions.map(({ id }) => (
                <RunQuestion key={id} id={id} store={store} view={view} seq={seq} isLive />
              ))}
              {questions.length === 0 && status === "working" && <Bones lines={4} />}
            </div>
          )}
          {tab === "plan" &&
            (plan.data ? (
              <Plan
                key={plan.data.round}
                run={run}
                answer={plan.data}
                spec={pack.data?.spec ?? {}}
                decision={decision ?? null}
              />
            ) : (
              <p className={styles.note}>The plan follows from the answers to the questions.</p>
            ))}
          {tab === "files" &&
            (packages.length ? (
              <Package
                run={run}
                packages={packages}
                phase={phase}
                promotion={openAt(view, seq).find(isPromotion) ?? null}
                store={store}
              />
            ) : (
              <p className={styles.note}>The files are written after the approval of the plan.</p>
            ))}
        </Tabs>
      </div>
    </Page>
  );
}

function nameOf({ plan }: PlanAnswer): string {
  const strategy = plan.WorkflowStrategy as { workflow_name?: string } | undefined;
  return strategy?.workflow_name ?? "";
}

/** Whether a question asks for the decision on a plan: it names the hash of one. */
function isDecision(request: Request): boolean {
  return "plan_hash" in Object(request.payload);
}

/** Whether a question asks what becomes of the packages. */
function isPromotion(request: Request): boolean {
  return request.sets.includes("promotion");
}
