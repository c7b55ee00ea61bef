import { useQueryClient } from "@tanstack/react-query";
import { useEffect } from "react";

import { can, useMe } from "../../app/session";
import type { AgentsAnswer, ArtifactTypesAnswer } from "../../protocol/api";
import { pathOf } from "../../transport/http";
import { useGet } from "../../transport/queries";

const WAIT_MS = 300;

/** Where the artifacts that fit a query are shown, and one of them. */
export function boardLink(board: string, query: Record<string, string>, artifact?: string): string {
  const search = new URLSearchParams(query).toString();
  return `/board${pathOf(board, ...(artifact ? [artifact] : []))}${search && `?${search}`}`;
}

export function apiOf(board: string, ...parts: string[]): string {
  return `/api/boards${pathOf(board, ...parts)}`;
}

export function useTypes(board: string) {
  return useGet<ArtifactTypesAnswer>(["types", board], apiOf(board, "types"));
}

/** The agents of a board: only developers are told. */
export function useAgents(board: string) {
  const isDeveloper = can(useMe(), "developer");
  const path = `/api/agents?workflow=${encodeURIComponent(board)}`;
  return useGet<AgentsAnswer>(["board", board, "agents"], path, { enabled: isDeveloper });
}

/** Read what is shown of a board again when something appears on it after a cursor. */
export function useChanges(board: string, after: string | undefined): void {
  const queries = useQueryClient();
  useEffect(() => {
    if (after === undefined) return;
    const query = new URLSearchParams({ stream: "true", after });
    const source = new EventSource(`${apiOf(board, "changes")}?${query}`);
    let timer: number | undefined;
    function note() {
      timer ??= window.setTimeout(() => {
        timer = undefined;
        void queries.invalidateQueries({ queryKey: ["board", board] });
      }, WAIT_MS);
    }
    source.addEventListener("artifact", note);
    source.addEventListener("gap", note);
    return () => {
      source.close();
      window.clearTimeout(timer);
    };
  }, [board, after, queries]);
}

/** `user:NAME` in words. */
export function producerName(producer: string): string {
  return producer.startsWith("user:") ? `${producer.slice("user:".length)} (a person)` : producer;
}
