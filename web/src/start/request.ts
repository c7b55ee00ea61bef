import type { ModelAnswer, WorkflowAnswer } from "../protocol/api";
import { pathOf } from "../transport/http";

export const SAMPLE = "sample";

/** What a webhook or a document would bring. */
export const ANY_INPUT = { type: "object", title: "What it would bring" };

/** The form of what a run begins with: the fields of its start, any object, or a message. */
export function schemaOf(workflow: WorkflowAnswer, isStaff: boolean): Record<string, unknown> {
  const { start, trigger, startup_mode } = workflow;
  // Only developers and operators choose the values of variables.
  if (start) return trigger === "form_submit" || isStaff ? start : fields({});
  if (isInput(trigger)) return ANY_INPUT;
  if (trigger === "schedule" || startup_mode === "BackendOnly") return fields({});
  return fields({ message: { type: "string", title: "Your first message", format: "textarea" } });
}

/** The request that starts a run with what was entered; without a model, the one of the settings. */
export function startRequest(
  workflow: WorkflowAnswer,
  value: unknown,
  model: string,
): { path: string; body: unknown } {
  const { name, trigger, start } = workflow;
  if (trigger === "form_submit" && !model) {
    return { path: `/api/starts${pathOf(name)}/form`, body: value };
  }
  const isGiven = trigger === "form_submit" || (!start && isInput(trigger));
  const given = isGiven ? { input: value } : start ? { values: value } : (value as object);
  return { path: "/api/runs", body: { workflow: name, model: model || null, ...given } };
}

/** Whether the models that a workflow is configured for can be called. */
export function isCallable(models: readonly ModelAnswer[], workflow: string): boolean {
  const used = models.filter(({ is_default, workflows }) => is_default || workflows.includes(workflow));
  return used.length > 0 && used.every(({ problem }) => problem === null);
}

function isInput(trigger: string): boolean {
  return trigger === "webhook" || trigger === "database_condition";
}

function fields(properties: Record<string, unknown>): Record<string, unknown> {
  return { type: "object", properties };
}
