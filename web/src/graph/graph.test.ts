import { describe, expect, test } from "vitest";

import { placeInColumns } from "./boxes";
import { END_ID, FAILED_ID, undoId } from "./flow";
import { placeGraph } from "./layout";
import { graphOf } from "./model";
import { edgeId, typeId } from "./nodes";
import type { GraphModel } from "./nodes";
import { otherwiseOf, readSpec, rulesOf } from "./spec";

function conversation(changes: object) {
  const names = ["A", "B", "C"];
  return {
    orchestrator: { workflow_name: "W", initial_agent: "A" },
    agents: names.map((agent_name) => ({ agent_name })),
    ...changes,
  };
}

describe("a conversation", () => {
  const handoffs = [
    { source_agent: "A", target_agent: "user" },
    { source_agent: "A", target_agent: "B", condition: "late", priority: 2 },
    { source_agent: "A", target_agent: "B", condition: "soon" },
    { source_agent: "B", target_agent: "terminate", condition: "done" },
  ];
  const model = graphOf(conversation({ handoffs }));

  test("rules between the same two share a line, in the order they are asked", () => {
    const line = model.edges.find((edge) => edge.id === edgeId("A", "B"));
    expect(line?.words).toEqual(["soon", "late"]);
    expect(model.edges).toHaveLength(1);
  });

  test("ways to the user and to the end are marks on the node", () => {
    const [a, b, c] = model.nodes;
    expect([a?.toUser, a?.toEnd]).toEqual([true, undefined]);
    // B has no fallback: by default the user is next.
    expect([b?.toUser, b?.toEnd]).toEqual([true, true]);
    expect(c?.toUser).toBe(true);
  });

  test("the fallback is asked last, whatever its priority", () => {
    const spec = readSpec(conversation({ handoffs }));
    expect(rulesOf(spec).map((rule) => rule.index)).toEqual([2, 3, 1, 0]);
  });

  test("an undeclared target is drawn as such", () => {
    const drawn = graphOf(conversation({ handoffs: [{ source_agent: "A", target_agent: "X" }] }));
    expect(drawn.nodes.find((node) => node.id === "X")?.kind).toBe("undeclared");
  });

  test("the pattern decides where no rule does", () => {
    const of = (pattern: string) =>
      readSpec(
        conversation({
          orchestrator: { workflow_name: "W", initial_agent: "A", orchestration_pattern: pattern },
        }),
      );
    expect(otherwiseOf(of("Pipeline"), "A").target).toBe("B");
    expect(otherwiseOf(of("Pipeline"), "C").target).toBe("user");
    expect(otherwiseOf(of("Star"), "B").target).toBe("A");
  });

  test("members of a group stand in its frame and lead to what comes after it", () => {
    const parallel = [{ name: "Both", members: ["A", "B"], next: "C" }];
    const drawn = graphOf(conversation({ orchestrator: { workflow_name: "W", parallel } }));
    expect(drawn.clusters).toEqual(["Both"]);
    expect(drawn.edges.map((edge) => edge.id)).toEqual(["Both>A", "A>C", "Both>B", "B>C"]);
    const frame = placeGraph(drawn).frames.Both;
    const member = placeGraph(drawn).boxes.A;
    expect(frame && member && frame.x < member.x && frame.y < member.y).toBe(true);
  });
});

test("a flow is drawn with its branches, forks, loops and what undoes a step", () => {
  const work = { kind: "function", function: "m:f" };
  const step = (name: string, more = {}) => ({ kind: "step", name, work, ...more });
  const model = graphOf({
    orchestrator: { workflow_name: "W" },
    flow: {
      steps: [
        step("First", { compensate: work }),
        {
          kind: "fork",
          name: "Both",
          paths: [
            { name: "left", steps: [step("Left")] },
            { name: "right", steps: [{ kind: "repeat", name: "Loop", until: "ok", steps: [step("Right")] }] },
          ],
          join: step("Meet"),
        },
        { kind: "approval", name: "Ask", approver: "role:manager" },
      ],
    },
  });
  const ids = new Set(model.edges.map((edge) => edge.id));
  for (const [from, to] of [
    ["/start", "First"],
    ["First", "Both"],
    ["First", undoId("First")],
    ["Both", "Left"],
    ["Left", "Meet"],
    ["Right", "Loop"],
    ["Loop", "Right"],
    ["Loop", "Meet"],
    ["Meet", "Ask"],
    ["Ask", END_ID],
    ["Ask", FAILED_ID],
  ] as const) {
    expect(ids).toContain(edgeId(from, to));
  }
  expect(model.nodes[0]?.id).toBe("/start");
});

test("a board is drawn with its artifact types", () => {
  const model = graphOf({
    orchestrator: { workflow_name: "W" },
    agents: [{ agent_name: "writer" }],
    board: {
      artifacts: ["Lead", "Story"],
      agents: [{ agent: "writer", consumes: [{ types: ["Lead"] }], publishes: [{ type: "Story" }] }],
    },
  });
  expect(model.edges.map((edge) => edge.id)).toEqual([
    edgeId(typeId("Lead"), "writer"),
    edgeId("writer", typeId("Story")),
  ]);
  expect(model.nodes.find((node) => node.title === "Lead")?.about).toBe("from outside");
});

function largeModel(count: number): GraphModel {
  const names = Array.from({ length: count }, (_, index) => `Agent${index}`);
  const handoffs = names.slice(1).flatMap((name, index) => [
    { source_agent: `Agent${Math.floor(index / 4)}`, target_agent: name, condition: `to_${name}` },
    ...(index % 2 ? [{ source_agent: name, target_agent: "Agent0", condition: "back" }] : []),
  ]);
  return graphOf(conversation({ agents: names.map((agent_name) => ({ agent_name })), handoffs }));
}

describe("the layout", () => {
  test("300 nodes are placed within the deadline, and none over another", () => {
    const model = largeModel(300);
    const started = performance.now();
    const boxes = Object.values(placeGraph(model).boxes);
    expect(performance.now() - started).toBeLessThan(5_000);
    expect(boxes).toHaveLength(300);
    for (const [index, a] of boxes.entries()) {
      for (const b of boxes.slice(index + 1)) {
        const apart = a.x + a.width <= b.x || b.x + b.width <= a.x || a.y + a.height <= b.y || b.y + b.height <= a.y;
        expect(apart).toBe(true);
      }
    }
  });

  test("columns place every node and every line", () => {
    const model = largeModel(20);
    const placed = placeInColumns(model);
    expect(Object.keys(placed.boxes)).toHaveLength(20);
    expect(Object.keys(placed.lines)).toHaveLength(model.edges.length);
    expect(placed.boxes.Agent1?.x).toBeGreaterThan(placed.boxes.Agent0?.x ?? 0);
  });
});
