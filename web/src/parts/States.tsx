import type { ReactNode } from "react";

import { ApiProblem } from "../transport/http";
import { Button } from "./Button";
import { CopyButton } from "./Copy";
import styles from "./States.module.css";

export interface EmptyProps {
  title: string;
  children?: ReactNode;
  action?: ReactNode;
}

/** A place where there is nothing yet: what it is for, and one thing to do. */
export function Empty({ title, children, action }: EmptyProps) {
  return (
    <div className={styles.empty}>
      <svg viewBox="0 0 44 16" width="44" height="16" aria-hidden="true" className={styles.threads}>
        <path d="M2 3c10 0 10 10 20 10s10-10 20-10" />
        <path d="M2 13c10 0 10-10 20-10s10 10 20 10" />
      </svg>
      <h2>{title}</h2>
      {children && <div>{children}</div>}
      {action}
    </div>
  );
}

export interface ProblemProps {
  error: unknown;
  onRetry?: () => void;
  /** What can be done, as buttons. */
  actions?: ReactNode;
}

/** What went wrong, why, and what to do. */
export function Problem({ error, onRetry, actions }: ProblemProps) {
  const problem = error instanceof ApiProblem ? error : null;
  const message = error instanceof Error ? error.message : String(error);
  const findings = problem?.findings ?? [];
  return (
    <div role="alert" className={styles.problem}>
      <p className={styles.what}>
        <strong>{sentence(message)}</strong> {problem?.code && <code>{problem.code}</code>}
      </p>
      {problem?.cause_.map((line) => <p key={line}>{sentence(line)}</p>)}
      {problem?.hint.map((line) => (
        <p key={line} className={styles.hint}>
          {sentence(line)}
        </p>
      ))}
      {findings.length > 0 && (
        <ul>
          {findings.map((finding, index) => (
            <li key={index}>
              <code>{finding.code}</code> {finding.message}
            </li>
          ))}
        </ul>
      )}
      <div className={styles.actions}>
        {onRetry && <Button onClick={onRetry}>Try again</Button>}
        {actions}
        <CopyButton text={details(error, message)} label="Copy details" />
      </div>
    </div>
  );
}

/** Grey lines in place of what is loading; seen only if it takes a moment. */
export function Bones({ lines = 4 }: { lines?: number }) {
  return (
    <div role="status" aria-label="Loading" className={styles.bones}>
      {Array.from({ length: lines }, (_, index) => (
        <span key={index} />
      ))}
    </div>
  );
}

function details(error: unknown, message: string): string {
  if (!(error instanceof ApiProblem)) return message;
  const findings = error.findings.map((finding) => `${finding.code} ${finding.message}`);
  const what = error.code ? `${error.code}: ${message}` : message;
  return [what, ...error.cause_, ...error.hint, ...findings].join("\n");
}

function sentence(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
