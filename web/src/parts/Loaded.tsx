import type { ReactNode } from "react";

import { Bones, Problem } from "./States";

export interface LoadedProps<T> {
  query: { data: T | undefined; error: unknown; refetch: () => unknown };
  /** How many lines are seen while it is loading. */
  lines?: number;
  children: (data: T) => ReactNode;
}

/** What was read, when it is there; what was read last stays below the problem of reading it again. */
export function Loaded<T>({ query: { data, error, refetch }, lines, children }: LoadedProps<T>) {
  return (
    <>
      {error !== null && <Problem error={error} onRetry={refetch} />}
      {data !== undefined && children(data)}
      {data === undefined && error === null && <Bones lines={lines} />}
    </>
  );
}
