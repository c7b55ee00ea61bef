import { expect, test } from "vitest";

import type { EventAnswer } from "../../protocol/api";
import { stepsIn } from "./steps";

let seq = 0;

function event(kind: string, data: Record<string, unknown> = {}, actor = "engine"): EventAnswer {
  seq += 1;
  return { v: 1, seq, ts: 0, run: "r", turn: 0, kind, actor, cause: 0, data };
}

const answered = event("RequestAnswered", { id: "r:1", user: "ada" });
const recorded = [event("RunStarted", {}, "recording"), answered];

test("a recorded run was played, and its answers are not those of the person", () => {
  expect(stepsIn(recorded, "ada")).toEqual(["played"]);
});

test("a fork with another value that the sample model continues has a changed value", () => {
  const fork = [...recorded, event("RunForked"), event("VariableSet", { writer: "edit" })];
  expect(stepsIn(fork, "ada")).toEqual(["played", "forked"]);
  const replied = [...fork, event("ModelReplied", { answerer: "sample" })];
  expect(stepsIn(replied, "ada")).toEqual(["played", "forked", "changed"]);
});

test("an answer of the person counts; the message of the start or the answer of another does not", () => {
  const started = event("RunStarted", {}, "user:ada");
  expect(stepsIn([started, answered], "ada")).toEqual(["answered"]);
  expect(stepsIn([started, answered], "bea")).toEqual([]);
  const withMessage = event("RunStarted", { with_message: true }, "user:ada");
  expect(stepsIn([withMessage, answered], "ada")).toEqual([]);
  expect(stepsIn([withMessage, answered, answered], "ada")).toEqual(["answered"]);
});
