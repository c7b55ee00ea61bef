import { readFileSync } from "node:fs";

import { expect, test } from "vitest";

import { compose, joinComments, markKeys, marksOf } from "./plan";

test("comments become one text about the earliest part that they name", () => {
  const comments = [
    { trail: ["ModuleAgents", "Reader"], text: "rename to Invoice Reader" },
    { trail: ["WorkflowStrategy", "Module 1: Reading"], text: "one agent is enough" },
  ];
  expect(joinComments(comments, "")).toEqual({
    text: "rename to Invoice Reader (about Reader)\none agent is enough (about Module 1: Reading)",
    part: "strategy",
  });
  expect(joinComments(comments.slice(0, 1), " no approval ")).toEqual({
    text: "no approval\nrename to Invoice Reader (about Reader)",
  });
});

test("a comment on a part that the server does not know names no part", () => {
  expect(joinComments([{ trail: ["Scenarios"], text: "too few" }], "")).toEqual({
    text: "too few (about Scenarios)",
  });
});

test("elements are marked by their names in the paths of changes", () => {
  const marks = marksOf([
    { path: "WorkflowStrategy.modules[Reading].agents_needed", before: [], after: ["Reader"] },
    { path: "ModuleAgents[Reader]", before: null, after: {} },
    { path: "ModuleAgents[Clerk].agent_tools[look_up]", before: {}, after: null },
    { path: "TechnicalBlueprint.ui_components[Boss.approve].label", before: "a", after: "b" },
    { path: "WorkflowStrategy.trigger", before: "chat", after: "form_submit" },
  ]);
  expect([...marks]).toEqual([
    ["WorkflowStrategy/Reading", "changed"],
    ["ModuleAgents/Reader", "new"],
    ["ModuleAgents/Clerk", "changed"],
    ["TechnicalBlueprint/Boss.approve", "changed"],
    ["WorkflowStrategy/WorkflowStrategy", "changed"],
  ]);
  expect(markKeys("WorkflowStrategy", "Module 1: Reading", {})).toContain("WorkflowStrategy/Reading");
  const card = { agent: "Boss", tool: "approve" };
  expect(markKeys("TechnicalBlueprint", "Card", card)).toContain("TechnicalBlueprint/Boss.approve");
});

test("a plan is composed of its modules with their agents, and keeps parts it does not know", () => {
  const file = "../examples/briefs/02-invoice-approval.plan.json";
  const plan = { ...JSON.parse(readFileSync(file, "utf-8")), Scenarios: { says: "pay twice" } };
  const { strategy, modules, diagram, others } = compose(plan);
  expect(strategy.workflow_name).toBe("InvoiceApproval");
  expect(modules.length).toBe(plan.WorkflowStrategy.modules.length);
  expect(modules.every(({ agents }) => agents.length > 0)).toBe(true);
  expect(diagram).toMatch(/^sequenceDiagram/);
  expect(others.map(([part]) => part)).toEqual(["PatternSelection", "TechnicalBlueprint", "Scenarios"]);
  expect(compose({ Odd: { a: 1 } }).others).toEqual([["Odd", { a: 1 }]]);
});
