import type { FindingAnswer, ProblemAnswer } from "../protocol/api";

/** A failure as the server describes it; status 0 and no code if it could not be reached. */
export class ApiProblem extends Error {
  readonly status: number;
  readonly code: string;
  readonly cause_: string[];
  readonly hint: string[];
  readonly findings: FindingAnswer[];
  readonly run?: string;

  constructor(status: number, problem: Partial<ProblemAnswer>) {
    super(problem.message ?? `the server answered ${status}`);
    this.name = "ApiProblem";
    this.status = status;
    this.code = problem.code ?? "";
    this.cause_ = problem.cause ?? [];
    this.hint = problem.hint ?? [];
    this.findings = problem.findings ?? [];
    this.run = problem.run ?? undefined;
  }
}

export function offline(): ApiProblem {
  return new ApiProblem(0, {
    message: "the server cannot be reached",
    hint: ["check that it runs, and the connection to it"],
  });
}

export function get<T>(path: string): Promise<T> {
  return request<T>("GET", path);
}

/** `key`: sent twice with the same one, the server does it once. */
export function post<T>(path: string, body?: unknown, options?: { key?: string }): Promise<T> {
  return request<T>("POST", path, body, options?.key);
}

export function put<T>(path: string, body: unknown): Promise<T> {
  return request<T>("PUT", path, body);
}

export function del<T>(path: string): Promise<T> {
  return request<T>("DELETE", path);
}

/** Send the bytes of a file as the body. */
export function upload<T>(path: string, file: Blob): Promise<T> {
  return request<T>("POST", path, file);
}

/** Read a file. */
export async function download(path: string): Promise<Blob> {
  const answer = await fetch(path, { credentials: "same-origin" }).catch(() => {
    throw offline();
  });
  if (answer.ok) return answer.blob();
  const found = parse(await answer.text());
  throw new ApiProblem(answer.status, isProblem(found) ? found : {});
}

/** Return "/" and the parts, each encoded. */
export function pathOf(...parts: string[]): string {
  return parts.map((part) => `/${encodeURIComponent(part)}`).join("");
}

async function request<T>(method: string, path: string, body?: unknown, key?: string): Promise<T> {
  const headers: Record<string, string> = { Accept: "application/json" };
  if (key !== undefined) headers["Idempotency-Key"] = key;
  let content: BodyInit | undefined;
  if (body instanceof Blob) {
    content = body;
    headers["Content-Type"] = body.type || "application/octet-stream";
  } else if (body !== undefined) {
    content = JSON.stringify(body);
    headers["Content-Type"] = "application/json";
  }
  let answer: Response;
  let text: string;
  try {
    answer = await fetch(path, { method, headers, body: content, credentials: "same-origin" });
    text = await answer.text();
  } catch {
    throw offline();
  }
  if (!answer.ok) throw problemOf(answer.status, text);
  return parse(text) as T;
}

/** The problem in an answer that is not OK. */
export function problemOf(status: number, text: string): ApiProblem {
  const found = parse(text);
  return new ApiProblem(status, isProblem(found) ? found : {});
}

function parse(text: string): unknown {
  try {
    return text ? JSON.parse(text) : undefined;
  } catch {
    return text;
  }
}

function isProblem(found: unknown): found is ProblemAnswer {
  return typeof found === "object" && found !== null && "code" in found && "message" in found;
}
