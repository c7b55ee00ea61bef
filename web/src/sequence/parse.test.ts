import { readdirSync, readFileSync } from "node:fs";

import { describe, expect, test } from "vitest";

import { parseSequence } from "./parse";

const ROUTING = `sequenceDiagram
    title Support#58; the desk
    %% A comment
    actor n0 as User
    participant n1 as Router<br/>router
    n0->>n1: opens a chat
    alt it is a bill
        n1-->>n0: asks
        opt the answer is unclear
            Note over n1: uses look#95;up
        end
    else otherwise
        Note over n0,n1: one<br/>two
    end
    n1->>n1: thinks
`;

describe("parseSequence", () => {
  test("reads participants, messages, notes and nested blocks", () => {
    const story = parseSequence(ROUTING);
    expect(story?.title).toBe("Support: the desk");
    expect(story?.participants).toEqual([
      { id: "n0", name: "User", role: "", isPerson: true },
      { id: "n1", name: "Router", role: "router", isPerson: false },
    ]);
    expect(story?.steps).toEqual([
      { kind: "message", source: 0, target: 1, text: "opens a chat", isDashed: false },
      {
        kind: "block",
        word: "alt",
        branches: [
          {
            label: "it is a bill",
            steps: [
              { kind: "message", source: 1, target: 0, text: "asks", isDashed: true },
              {
                kind: "block",
                word: "opt",
                branches: [
                  {
                    label: "the answer is unclear",
                    steps: [{ kind: "note", first: 1, last: 1, lines: ["uses look_up"] }],
                  },
                ],
              },
            ],
          },
          {
            label: "otherwise",
            steps: [{ kind: "note", first: 0, last: 1, lines: ["one", "two"] }],
          },
        ],
      },
      { kind: "message", source: 1, target: 1, text: "thinks", isDashed: false },
    ]);
  });

  test.each([
    ["flowchart TD\n a-->b"],
    ["sequenceDiagram\n    n0->>n1: nobody is declared"],
    ["sequenceDiagram\n    actor n0 as User\n    alt never closed"],
    ["sequenceDiagram\n    actor n0 as User\n    rect rgb(0, 0, 0)"],
  ])("returns null for a text that it does not know: %s", (text) => {
    expect(parseSequence(text)).toBeNull();
  });

  test("reads the diagram of every example plan", () => {
    const folder = "../examples/briefs/";
    const plans = readdirSync(folder).filter((name) => name.endsWith(".plan.json"));
    expect(plans.length).toBeGreaterThan(20);
    for (const name of plans) {
      const plan = JSON.parse(readFileSync(folder + name, "utf-8"));
      const story = parseSequence(plan.MermaidSequenceDiagram.mermaid_diagram);
      expect(story?.steps.length, name).toBeGreaterThan(0);
    }
  });
});
