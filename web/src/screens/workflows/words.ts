import type { WorkflowAnswer } from "../../protocol/api";
import { pathOf } from "../../transport/http";

export const WAYS: Record<WorkflowAnswer["kind"], string> = {
  conversation: "Conversation",
  flow: "Flow",
  board: "Board",
};

export const TRIGGERS: Record<string, string> = {
  chat: "a chat",
  form_submit: "a form",
  schedule: "a schedule",
  webhook: "a webhook",
  database_condition: "a document",
};

export const ORIGINS: Record<NonNullable<WorkflowAnswer["owner"]>, string> = {
  own: "your tenant",
  shared: "all tenants",
  shipped: "Weft",
};

/** The address of a line of a file. */
export function placeUrl(name: string, file: string, line: number | null): string {
  const query = new URLSearchParams({ tab: "files", file, line: String(line ?? 1) });
  return `/workflows${pathOf(name)}?${query}`;
}
