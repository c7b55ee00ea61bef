// A workflow as nodes and lines, the input of the layout and of the picture.

import type { PackageAnswer } from "../protocol/api";
import { flowGraph } from "./flow";
import { Edges, plainNode, typeId } from "./nodes";
import type { GraphModel, GraphNode } from "./nodes";
import { agentNames, groupsOf, otherwiseOf, readSpec, rulesOf, TERMINATE, USER } from "./spec";
import type { BoardAgent, Spec } from "./spec";

export function graphOf(json: PackageAnswer["spec"]): GraphModel {
  const spec = readSpec(json);
  if (spec.board) return boardGraph(spec, spec.board);
  const threads = new Map(agentNames(spec).map((name, index) => [name, index]));
  return spec.flow ? flowGraph(spec.flow, threads) : conversationGraph(spec);
}

function conversationGraph(spec: Spec): GraphModel {
  const groups = groupsOf(spec);
  const edges = new Edges();
  const nodes = new Map<string, GraphNode>();
  const entry = new Map(groups.flatMap((group) => group.entries.map((name) => [name, group.name])));
  for (const name of agentNames(spec)) nodes.set(name, agentNode(spec, name));
  for (const { name } of groups) nodes.set(name, { ...plainNode(name, "group"), about: "side by side" });

  function connect(source: string, target: string, words: string, isDashed = false): void {
    const from = nodes.get(source) ?? plainNode(source, "undeclared");
    nodes.set(source, from);
    if (target === USER) from.toUser = true;
    else if (target === TERMINATE) from.toEnd = true;
    else {
      const to = entry.get(target) ?? target;
      if (!nodes.has(to)) nodes.set(to, plainNode(to, "undeclared"));
      edges.add(source, to, words, isDashed);
    }
  }

  const rules = rulesOf(spec);
  for (const rule of rules) connect(rule.source, rule.target, rule.words, rule.isBefore);
  for (const group of groups) {
    for (const name of group.members) {
      connect(group.name, name, "");
      connect(name, group.next, "when all are done");
      const member = nodes.get(name);
      if (member) member.cluster = group.name;
    }
    const node = nodes.get(group.name);
    if (node) node.cluster = group.name;
  }
  const members = new Set(groups.flatMap((group) => group.members));
  for (const name of agentNames(spec)) {
    const isClosed = rules.some((rule) => rule.source === name && rule.isFallback && !rule.isBefore);
    const otherwise = otherwiseOf(spec, name);
    if (!isClosed && !members.has(name)) connect(name, otherwise.target, otherwise.words);
  }
  return {
    kind: "conversation",
    nodes: [...nodes.values()],
    edges: [...edges.all.values()],
    clusters: groups.map((group) => group.name),
  };
}

function boardGraph(spec: Spec, board: NonNullable<Spec["board"]>): GraphModel {
  const edges = new Edges();
  const nodes = new Map<string, GraphNode>();
  const addType = (type: string) =>
    nodes.set(typeId(type), { ...plainNode(typeId(type), "artifact"), title: type });
  for (const type of board.artifacts) addType(typeof type === "string" ? type : type.name);
  const declared = new Map(board.agents?.map((agent) => [agent.agent, agent]));
  for (const name of new Set([...agentNames(spec), ...declared.keys()])) {
    const node = agentNode(spec, name);
    const schedule = scheduleWords(declared.get(name)?.schedule);
    nodes.set(name, schedule ? { ...node, about: `${node.about} · ${schedule}` } : node);
  }
  for (const { agent, consumes = [], publishes = [] } of declared.values()) {
    for (const { types, where, mode } of consumes) {
      for (const type of types) {
        if (!nodes.has(typeId(type))) addType(type);
        edges.add(typeId(type), agent, where ? `if ${where}` : "", mode === "direct");
      }
    }
    for (const { type } of publishes) {
      if (!nodes.has(typeId(type))) addType(type);
      edges.add(agent, typeId(type));
    }
  }
  const made = new Set([...edges.all.values()].map((edge) => edge.target));
  for (const node of nodes.values()) {
    if (node.kind === "artifact") node.about = made.has(node.id) ? "" : "from outside";
  }
  return { kind: "board", nodes: [...nodes.values()], edges: [...edges.all.values()], clusters: [] };
}

function scheduleWords(schedule: BoardAgent["schedule"]): string {
  if (!schedule) return "";
  if (schedule.every_seconds) return `every ${schedule.every_seconds} s`;
  if (schedule.daily) return `daily at ${schedule.daily} UTC`;
  return schedule.at ? `at ${schedule.at}` : `cron ${schedule.cron}`;
}

function agentNode(spec: Spec, name: string): GraphNode {
  const index = agentNames(spec).indexOf(name);
  const tools = (spec.tools ?? []).filter((tool) => tool.agent === name).length;
  const notes = [
    ...(spec.orchestrator.initial_agent === name ? ["first"] : []),
    ...(tools ? [`${tools} ${tools === 1 ? "tool" : "tools"}`] : []),
  ];
  if (index < 0) return plainNode(name, "undeclared");
  const about = notes.join(" · ") || (spec.agents?.[index]?.agent_type ?? "no tools");
  return { id: name, kind: "agent", title: name, about, thread: index };
}
