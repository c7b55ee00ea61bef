/** Messages that the server has not confirmed: kept in the tab, so that they survive a reload. */
import { ApiProblem } from "../transport/http";

export interface QueuedMessage {
  id: string;
  text: string;
  /** The server refused it; it can be sent again or dropped. */
  problem: ApiProblem | null;
}

/** Of a refused message: what the server said. */
interface KeptMessage {
  id: string;
  text: string;
  problem?: { status: number; code: string; message: string; cause: string[]; hint: string[] };
}

const USER = "weft.user";

export function readQueue(run: string): readonly QueuedMessage[] {
  const kept = JSON.parse(read(keyOf(run)) ?? "[]") as KeptMessage[];
  return kept.map(({ id, text, problem }) => ({
    id,
    text,
    problem: problem ? new ApiProblem(problem.status, problem) : null,
  }));
}

export function keepQueue(run: string, queue: readonly QueuedMessage[]): void {
  const kept = queue.map(({ id, text, problem }): KeptMessage => {
    if (problem === null) return { id, text };
    const { status, code, message, cause_: cause, hint } = problem;
    return { id, text, problem: { status, code, message, cause, hint } };
  });
  write(keyOf(run), kept.length > 0 ? JSON.stringify(kept) : null);
}

/** Return whether the tab belonged to another user until now; their messages are dropped. */
export function claimTab(user: string): boolean {
  const isOther = (read(USER) ?? user) !== user;
  if (isOther) dropQueues();
  write(USER, user);
  return isOther;
}

export function dropQueues(): void {
  try {
    sessionStorage.clear();
  } catch {
    // Nothing was kept.
  }
}

function keyOf(run: string): string {
  return `weft.queue.${run}`;
}

function read(key: string): string | null {
  try {
    return sessionStorage.getItem(key);
  } catch {
    return null; // The browser allows no storage.
  }
}

function write(key: string, value: string | null): void {
  try {
    if (value === null) sessionStorage.removeItem(key);
    else sessionStorage.setItem(key, value);
  } catch {
    // The browser allows no storage, or it is full: a reload loses the message.
  }
}
