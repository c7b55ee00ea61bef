import { can, useMe } from "../../app/session";
import { Link } from "../../app/url";
import type { Spec } from "../../graph/spec";
import { Entries } from "../../packages/Structure";
import { Facts, Section } from "../../parts";
import type { WorkflowAnswer } from "../../protocol/api";
import { StartForm } from "../../start/StartForm";
import styles from "./workflows.module.css";
import { ORIGINS, TRIGGERS, WAYS } from "./words";

interface OverviewProps {
  workflow: WorkflowAnswer;
  /** For developers. */
  spec: Spec | undefined;
}

/** What a workflow does, the form that starts it, and what it consists of. */
export function Overview({ workflow, spec }: OverviewProps) {
  const me = useMe();
  const { name, description, kind, trigger, owner, digest, health } = workflow;
  return (
    <div className={styles.tab}>
      <div className={styles.columns}>
        <div className={styles.about}>
          <p>{description}</p>
          <Facts
            values={{
              Way: WAYS[kind],
              "Started by": kind === "conversation" && TRIGGERS[trigger],
              Pattern: spec?.orchestrator.orchestration_pattern ?? false,
              From: owner ? ORIGINS[owner] : false,
              Digest: digest?.slice(0, 12) ?? false,
              Starts: health?.problem ?? false,
            }}
          />
          {can(me, "operator") && kind === "conversation" && trigger !== "chat" && (
            <Link to="/starts">See its starts</Link>
          )}
        </div>
        <section aria-label="Start" className={styles.start}>
          <StartForm name={name} />
        </section>
      </div>
      {Object.entries(spec ? contentsOf(spec) : {}).map(
        ([title, list]) =>
          list.length > 0 && (
            <Section key={title} title={title}>
              <Entries label={title} list={list} trail={[]} />
            </Section>
          ),
      )}
    </div>
  );
}

/** What a developer looks for first, as tables. */
function contentsOf(spec: Spec): Record<string, Record<string, unknown>[]> {
  const { agents = [], tools = [], variables = {}, board } = spec;
  return {
    Agents: agents.map(({ agent_name: name, agent_type = "worker", description }) => ({
      name,
      type: agent_type,
      description,
      tools: tools.filter(({ agent }) => agent === name).map((tool) => tool.function),
      sees: spec.exposure?.[name],
    })),
    "Types of artifacts": (board?.artifacts ?? []).map((each) => {
      const type = typeof each === "string" ? each : each.name;
      const subscribed = board?.agents ?? [];
      const publish = subscribed.filter(({ publishes }) => publishes?.some((by) => by.type === type));
      const consume = subscribed.filter(({ consumes }) => consumes?.some((by) => by.types.includes(type)));
      return {
        name: type,
        published_by: publish.length ? publish.map(({ agent }) => agent) : "outside",
        consumed_by: consume.map(({ agent }) => agent),
      };
    }),
    Tools: tools.map(({ function: name, agent, description }) => ({ name, agent, description })),
    Variables: Object.entries(variables).map(([name, { type, source, secret, description }]) => ({
      name,
      type,
      source: source.type,
      at_first: secret ? "secret" : (source.value ?? source.default),
      description,
    })),
  };
}
