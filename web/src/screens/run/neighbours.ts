import { useQueryClient } from "@tanstack/react-query";

import { currentRoute, go } from "../../app/url";
import type { RunsAnswer } from "../../protocol/api";
import { get, pathOf } from "../../transport/http";

/** Among so many of the newest runs. */
const RUNS = 200;

/** Opens the run that was started before this one (-1) or after it (1), with the same pane. */
export function useNeighbours(run: string): (by: -1 | 1) => void {
  const queries = useQueryClient();

  async function open(by: -1 | 1) {
    const { items } = await queries.fetchQuery({
      queryKey: ["runs", "neighbours"],
      queryFn: () => get<RunsAnswer>(`/api/runs?limit=${RUNS}`),
    });
    const index = items.findIndex((row) => row.run === run);
    // The newest is the first.
    const next = index < 0 ? undefined : items[index - by];
    if (!next) return;
    const panel = currentRoute().query.get("panel");
    go(`/runs${pathOf(next.run)}${panel ? `?panel=${encodeURIComponent(panel)}` : ""}`);
  }

  // Without a connection there is nowhere to go.
  return (by) => void open(by).catch(() => undefined);
}
