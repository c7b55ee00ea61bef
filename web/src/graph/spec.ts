// What the page reads of a workflow's spec. What equals its default is not in the JSON.

import type { PackageAnswer } from "../protocol/api";

export interface Handoff {
  source_agent: string;
  target_agent: string;
  condition?: string | null;
  condition_type?: "expression" | "llm" | "nearest";
  condition_scope?: "pre" | "post";
  priority?: number;
}

export interface VariableSpec {
  type: string;
  description?: string;
  source: { type: string; value?: unknown; default?: unknown; triggers?: Trigger[] };
  readers?: string[] | null;
  secret?: boolean;
}

export interface Trigger {
  type: string;
  agent?: string;
  tool?: string;
  response_key?: string;
  argument?: string;
}

interface Group {
  name: string;
  members: string[];
  next?: string | null;
}

export interface Work {
  kind: "agent" | "function";
  agent?: string;
  function?: string;
}

export interface FlowPath {
  steps?: FlowNode[];
  ends?: boolean;
}

export interface Step {
  kind: "step";
  name: string;
  work: Work;
  validate?: { condition: string; message?: string }[];
  retry?: { attempts: number };
  timeout_seconds?: number;
  confidence?: { minimum: number; path?: FlowPath };
  compensate?: Work;
  on_failure?: FlowPath;
}

export interface Approval {
  kind: "approval";
  name: string;
  approver: string;
  options?: { name: string; rejects?: boolean }[];
  on_timeout?: FlowPath;
  on_rejection?: FlowPath;
}

export type FlowNode =
  | Step
  | Approval
  | {
      kind: "branch";
      name: string;
      on: string;
      cases: { value: unknown; path: FlowPath }[];
      otherwise?: FlowPath;
    }
  | {
      kind: "fork";
      name: string;
      paths: { name: string; steps: FlowNode[]; on_failure?: FlowPath }[];
      join?: Step;
    }
  | { kind: "repeat"; name: string; until: string; steps: FlowNode[]; max_iterations?: number };

export interface Flow {
  steps?: FlowNode[];
  finally?: Step;
  on_failure?: FlowPath;
}

export interface BoardAgent {
  agent: string;
  consumes?: { types: string[]; where?: string; tags?: string[]; mode?: string }[];
  publishes?: { type: string }[];
  schedule?: { every_seconds?: number; daily?: string; at?: string; cron?: string };
}

export interface AgentSpec {
  agent_name: string;
  description?: string;
  agent_type?: string;
  prompt_sections?: { id: string; heading?: string; content: string }[];
}

export interface ToolSpec {
  agent?: string | null;
  function: string;
  description?: string;
  hook?: string;
}

export interface Spec {
  orchestrator: {
    workflow_name: string;
    orchestration_pattern?: string;
    initial_agent?: string;
    default_target?: string | null;
    human_in_the_loop?: boolean;
    startup_mode?: string | null;
    trigger?: { type: string };
    parallel?: Group[];
  };
  agents?: AgentSpec[];
  variables?: Record<string, VariableSpec>;
  exposure?: Record<string, string[]>;
  handoffs?: Handoff[];
  tools?: ToolSpec[];
  flow?: Flow | null;
  board?: { artifacts: (string | { name: string })[]; agents?: BoardAgent[] } | null;
}

export const USER = "user";
export const TERMINATE = "terminate";

export function readSpec(spec: PackageAnswer["spec"]): Spec {
  // The server has checked it.
  return spec as unknown as Spec;
}

export function agentNames(spec: Spec): string[] {
  return (spec.agents ?? []).map((agent) => agent.agent_name);
}

/** One handoff rule, numbered as in the events. */
export interface Rule {
  index: number;
  source: string;
  target: string;
  words: string;
  isBefore: boolean;
  isFallback: boolean;
}

/** All rules, in the order in which they are asked. */
export function rulesOf(spec: Spec): Rule[] {
  const rules = (spec.handoffs ?? []).map((handoff, index) => ({ handoff, index }));
  rules.sort(
    (a, b) =>
      Number(a.handoff.condition == null) - Number(b.handoff.condition == null) ||
      (a.handoff.priority ?? 1) - (b.handoff.priority ?? 1) ||
      a.index - b.index,
  );
  return rules.map(({ handoff, index }) => ({
    index,
    source: handoff.source_agent,
    target: handoff.target_agent,
    words: conditionWords(handoff),
    isBefore: handoff.condition_scope === "pre",
    isFallback: handoff.condition == null,
  }));
}

function conditionWords(handoff: Handoff): string {
  if (handoff.condition == null) return handoff.condition_scope === "pre" ? "always" : "otherwise";
  if (handoff.condition_type === "llm") return `a model says: ${handoff.condition}`;
  if (handoff.condition_type === "nearest") return `nearest to: ${handoff.condition}`;
  return handoff.condition;
}

/** Who is next when no rule of an agent applies; the same as in weft.engine.conversation.routing. */
export function otherwiseOf(spec: Spec, agent: string): { target: string; words: string } {
  const names = agentNames(spec);
  const { orchestration_pattern: pattern = "", initial_agent: hub } = spec.orchestrator;
  const isLine = ["Pipeline", "Redundant", "FeedbackLoop"].includes(pattern);
  const following = names[names.indexOf(agent) + 1];
  if (isLine && following) return { target: following, words: "by the pattern" };
  if (pattern === "Star" && hub && agent !== hub) return { target: hub, words: "by the pattern" };
  return { target: restingTarget(spec), words: "by default" };
}

function restingTarget({ orchestrator }: Spec): string {
  if (orchestrator.default_target) return orchestrator.default_target;
  const isChat = (orchestrator.trigger?.type ?? "chat") === "chat";
  const mode = orchestrator.startup_mode ?? (isChat ? "" : "BackendOnly");
  return orchestrator.human_in_the_loop !== false && mode !== "BackendOnly" ? USER : TERMINATE;
}

/** Agents that take their turns side by side. `entries`: the names whose handoff begins it. */
export interface GroupOf {
  name: string;
  entries: string[];
  members: string[];
  next: string;
}

export function groupsOf(spec: Spec): GroupOf[] {
  const declared = spec.orchestrator.parallel ?? [];
  if (declared.length > 0) {
    return declared.map((group) => ({
      name: group.name,
      entries: [group.name],
      members: group.members,
      next: group.next ?? restingTarget(spec),
    }));
  }
  const names = agentNames(spec);
  const members = names.slice(0, -1);
  const next = names.at(-1);
  const ruled = new Set(spec.handoffs?.map((handoff) => handoff.source_agent));
  const isImplied =
    spec.orchestrator.orchestration_pattern === "Redundant" &&
    members.length > 1 &&
    !members.some((name) => ruled.has(name));
  if (!isImplied || !next) return [];
  const name = names.includes("Redundant") ? "RedundantAgents" : "Redundant";
  return [{ name, entries: members, members, next }];
}
