import { lazy, Suspense } from "react";

import { setQuery, useRoute } from "../../app/url";
import type { Spec } from "../../graph/spec";
import { Structure } from "../../packages/Structure";
import { Bones, Splitter } from "../../parts";
import styles from "./workflows.module.css";

const WorkflowGraph = lazy(() => import("../../graph/WorkflowGraph"));

interface GraphTabProps {
  json: Record<string, unknown>;
  spec: Spec;
}

/** The workflow as a picture, and beside it what was chosen in it. */
export function GraphTab({ json, spec }: GraphTabProps) {
  const node = useRoute().query.get("node");
  return (
    <Splitter
      name="the graph"
      start={62}
      left={
        <Suspense fallback={<Bones lines={6} />}>
          <WorkflowGraph
            spec={json}
            selected={node}
            onSelect={(id) => setQuery({ node: id === node ? null : id })}
          />
        </Suspense>
      }
      right={
        node === null ? (
          <p className={styles.details}>
            Choose something in the graph to read what it is.
          </p>
        ) : (
          <Details node={node} json={json} spec={spec} />
        )
      }
    />
  );
}

function Details({ node, json, spec }: GraphTabProps & { node: string }) {
  const title = node.replace(/^type:/, "");
  const part = [json.flow, json.board, json.models].map((each) => findNamed(each, title)).find(Boolean);
  const name = (part?.work as { agent?: string } | undefined)?.agent ?? node;
  const agent = spec.agents?.find(({ agent_name }) => agent_name === name);
  const links = {
    tools: (spec.tools ?? [])
      .filter((tool) => agent && tool.agent === name)
      .map((tool) => ({ name: tool.function, description: tool.description })),
    hands_over: (spec.handoffs ?? [])
      .filter(({ source_agent }) => source_agent === name)
      .map(({ target_agent, condition }) => ({ to: target_agent, if: condition ?? "otherwise" })),
  };
  return (
    <div className={styles.details} role="region" tabIndex={0} aria-label={node}>
      <h2>{title}</h2>
      <Structure value={part ?? {}} />
      {agent?.description && <p>{agent.description}</p>}
      {agent?.prompt_sections?.map(({ id, heading, content }) => (
        <section key={id} className={styles.prompt}>
          <h3>{heading ?? id}</h3>
          <p>{content}</p>
        </section>
      ))}
      <Structure value={links} />
    </div>
  );
}

/** The entry of this name in a part of the spec, however deep; what it contains itself is left out. */
function findNamed(part: unknown, name: string): Record<string, unknown> | null {
  if (typeof part !== "object" || part === null) return null;
  const entry = part as Record<string, unknown>;
  if (entry.name === name || entry.agent === name) {
    const { name: _, agent: __, kind: ___, steps: ____, paths: _____, ...rest } = entry;
    return rest;
  }
  for (const inner of Object.values(entry)) {
    const found = findNamed(inner, name);
    if (found) return found;
  }
  return null;
}
