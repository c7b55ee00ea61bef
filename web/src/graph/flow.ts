// A flow as nodes and lines, like weft.diagrams.flow_graph.

import { Edges } from "./nodes";
import type { GraphModel, GraphNode } from "./nodes";
import type { Approval, Flow, FlowNode, FlowPath, Step, Work } from "./spec";

// Names of steps have no slash, so that these ids are free.
export const START_ID = "/start";
export const END_ID = "/end";
export const FAILED_ID = "/failed";
export const FAILURE_ID = "/failure";

/** The node where the paths of a fork without a join step meet. */
export function joinId(fork: string): string {
  return `/join/${fork}`;
}

/** The node of what undoes a step. */
export function undoId(step: string): string {
  return `/undo/${step}`;
}

export function flowGraph(flow: Flow, threads: ReadonlyMap<string, number>): GraphModel {
  const drawing = new Drawing(threads);
  drawing.drawAll(flow);
  return {
    kind: "flow",
    nodes: drawing.nodes.toReversed(),
    edges: [...drawing.edges.all.values()].toReversed(),
    clusters: [],
  };
}

/** Draws from the last node to the first: where one leads is known before it is drawn. */
class Drawing {
  readonly nodes: GraphNode[] = [];
  readonly edges = new Edges();

  constructor(private readonly threads: ReadonlyMap<string, number>) {}

  drawAll(flow: Flow): void {
    const last = flow.finally ? this.drawStep(flow.finally, END_ID, FAILED_ID) : END_ID;
    const first = this.drawLine(flow.steps, last, FAILED_ID);
    this.edges.add(START_ID, first);
    if (flow.on_failure) {
      this.drawFailure(FAILURE_ID, flow.on_failure, "");
      this.add(FAILURE_ID, "start", "on failure", "");
    }
    const targets = new Set([...this.edges.all.values()].map((edge) => edge.target));
    if (targets.has(FAILED_ID)) this.add(FAILED_ID, "end", "failed", "");
    if (targets.has(END_ID)) this.add(END_ID, "end", "end", "");
    this.add(START_ID, "start", "start", "");
  }

  private add(id: string, kind: GraphNode["kind"], title: string, about: string, work?: Work): void {
    const thread = this.threads.get(work?.agent ?? "") ?? -1;
    this.nodes.push({ id, kind, title, about, thread });
  }

  private drawLine(nodes: readonly FlowNode[] = [], after: string, fails: string): string {
    return nodes.reduceRight((next, node) => this.drawNode(node, next, fails), after);
  }

  private drawNode(node: FlowNode, after: string, fails: string): string {
    switch (node.kind) {
      case "step":
        return this.drawStep(node, after, fails);
      case "approval":
        return this.drawApproval(node, after, fails);
      case "branch":
        for (const { value, path } of node.cases) {
          this.edges.add(node.name, this.drawPath(path, after, fails), String(value));
        }
        if (node.otherwise) {
          this.edges.add(node.name, this.drawPath(node.otherwise, after, fails), "otherwise");
        }
        this.add(node.name, "branch", node.name, `branch on ${node.on}`);
        return node.name;
      case "fork": {
        const join = node.join ? this.drawStep(node.join, after, fails) : joinId(node.name);
        if (!node.join) {
          this.edges.add(join, after);
          this.add(join, "fork", `join ${node.name}`, "when all paths are over");
        }
        for (const path of node.paths) {
          this.edges.add(node.name, this.drawLine(path.steps, join, join), path.name);
          if (path.on_failure) {
            const target = this.drawPath(path.on_failure, join, join);
            this.edges.add(node.name, target, `${path.name} failed`, true);
          }
        }
        this.add(node.name, "fork", node.name, "paths side by side");
        return node.name;
      }
      case "repeat": {
        const first = this.drawLine(node.steps, node.name, fails);
        this.edges.add(node.name, first, "again");
        this.edges.add(node.name, after, "done");
        this.add(node.name, "branch", node.name, `loop until ${node.until}`);
        return first;
      }
    }
  }

  private drawPath(path: FlowPath, after: string, fails: string): string {
    return this.drawLine(path.steps, path.ends ? END_ID : after, fails);
  }

  /** A failure path never leads back. */
  private drawFailure(source: string, path: FlowPath, words: string): void {
    this.edges.add(source, this.drawLine(path.steps, FAILED_ID, FAILED_ID), words, true);
  }

  private drawStep(step: Step, after: string, fails: string): string {
    this.edges.add(step.name, after);
    if (step.confidence?.path) {
      const target = this.drawPath(step.confidence.path, after, fails);
      this.edges.add(step.name, target, `confidence below ${step.confidence.minimum}`);
    }
    if (step.on_failure) this.drawFailure(step.name, step.on_failure, "on failure");
    if (step.compensate) {
      const undo = undoId(step.name);
      this.edges.add(step.name, undo, "", true);
      this.add(undo, "undo", `undo ${step.name}`, workWords(step.compensate), step.compensate);
    }
    this.add(step.name, "step", step.name, workWords(step.work), step.work);
    return step.name;
  }

  private drawApproval(approval: Approval, after: string, fails: string): string {
    const options = approval.options ?? [{ name: "approve" }, { name: "reject", rejects: true }];
    const words = (rejects: boolean) =>
      options
        .filter((option) => (option.rejects ?? false) === rejects)
        .map((option) => option.name)
        .join(" or ");
    this.edges.add(approval.name, after, words(false));
    if (words(true)) {
      const { on_rejection: path } = approval;
      const target = path ? this.drawPath(path, after, fails) : fails;
      this.edges.add(approval.name, target, words(true), !path);
    }
    if (approval.on_timeout) {
      const target = this.drawPath(approval.on_timeout, after, fails);
      this.edges.add(approval.name, target, "no answer");
    }
    this.add(approval.name, "approval", approval.name, `approval of ${approval.approver}`);
    return approval.name;
  }
}

export function workWords(work: Work): string {
  return work.kind === "agent" ? `agent ${work.agent}` : (work.function ?? "").replace(/^local:/, "");
}
