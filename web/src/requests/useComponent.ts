import { useQuery } from "@tanstack/react-query";

import type { ComponentAnswer } from "../protocol/api";
import { get, pathOf } from "../transport/http";

/** The source of a component of a run's package; undefined if it has none of this name. */
export function useComponent(run: string, component: string): { isLoading: boolean; source?: string } {
  const { isLoading, data } = useQuery({
    queryKey: ["component", run, component],
    queryFn: () => get<ComponentAnswer>(`/api/runs${pathOf(run)}/components${pathOf(component)}`),
    enabled: component !== "",
    retry: false,
    staleTime: Infinity,
  });
  return { isLoading, source: data?.source ?? undefined };
}
