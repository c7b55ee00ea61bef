import { readSpec } from "../../graph/spec";
import { formatTokens } from "../../parts";
import type { PackageAnswer } from "../../protocol/api";
import { readableName } from "../../requests/Payload";
import { activeAt, statusAt, turnsAt } from "../../run/select";
import type { RunView } from "../../run/view";
import styles from "./design.module.css";

interface StepsProps {
  view: RunView;
  spec: PackageAnswer["spec"];
}

/** The agents of a design in their order: which have worked, by which model, which are to come. */
export function Steps({ view, spec }: StepsProps) {
  const active = new Set(activeAt(view, view.seq).map(({ agent }) => agent));
  const turns = turnsAt(view, view.seq);
  const now = statusAt(view, view.seq).status === "waiting" ? "waiting" : "now";
  return (
    <ol aria-label="Steps" className={styles.steps} tabIndex={0}>
      {(readSpec(spec).agents ?? []).map(({ agent_name: agent }) => {
        const count = turns.filter((turn) => turn.agent === agent).length;
        const state = active.has(agent) ? now : count ? "done" : "coming";
        return (
          <li key={agent} className={styles[state]} aria-current={active.has(agent) ? "step" : undefined}>
            <span className={styles.mark} />
            <span>
              {stepName(agent)}
              <span className="unseen">, {state === "now" ? "at work" : state}</span>
              <small>{notes(view, agent, count)}</small>
            </span>
          </li>
        );
      })}
    </ol>
  );
}

/** "WorkflowArchitectAgent" is the step "Workflow architect". */
export function stepName(agent: string): string {
  return readableName(agent.replace(/(Agent|Generator)$/, "").replace(/([A-Z])([A-Z][a-z])/g, "$1 $2"));
}

function notes(view: RunView, agent: string, count: number): string {
  const spent = view.spending.until(view.seq).filter((each) => each.agent === agent);
  const tokens = spent.reduce(
    (sum, { usage }) => sum + (usage.input_tokens ?? 0) + (usage.output_tokens ?? 0),
    0,
  );
  const parts = [
    spent.at(-1)?.model,
    tokens && `${formatTokens(tokens)} tokens`,
    count > 1 && `${count} times`,
  ];
  return parts.filter(Boolean).join(" · ");
}
