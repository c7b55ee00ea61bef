import type { EventAnswer } from "../../protocol/api";

export const STEPS = ["played", "forked", "changed", "answered", "installed"] as const;
export type Step = (typeof STEPS)[number];

/** The first steps that a person took in a run of theirs. */
export function stepsIn(events: readonly EventAnswer[], user: string): Step[] {
  const found: Step[] = [];
  // What comes before this event was copied from the other run.
  const fork = events.findLastIndex(({ kind }) => kind === "RunForked");
  const own = events.slice(fork + 1);
  const isRecording = events[0]?.actor === "recording";
  if (isRecording) found.push("played");
  if (fork >= 0) found.push("forked");
  if (fork >= 0 && own.some(isEdit) && own.some(isSampleReply)) found.push("changed");
  const answers = own.filter(({ kind, data }) => kind === "RequestAnswered" && data.user === user);
  // The message that came with the start is an answer, too.
  const given = fork < 0 && events[0]?.data.with_message ? 1 : 0;
  if ((fork >= 0 || !isRecording) && answers.length > given) found.push("answered");
  return found;
}

function isEdit({ kind, data }: EventAnswer): boolean {
  return kind === "VariableSet" && data.writer === "edit";
}

function isSampleReply({ kind, data }: EventAnswer): boolean {
  return kind === "ModelReplied" && data.answerer === "sample";
}
