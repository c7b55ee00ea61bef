import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import type { QueryKey, UseQueryOptions } from "@tanstack/react-query";

import { get } from "./http";

/** Read an address; lists whose key begins with the same words are read again together. */
export function useGet<T>(
  key: QueryKey,
  path: string,
  options?: Pick<UseQueryOptions<T>, "enabled" | "refetchInterval" | "staleTime">,
) {
  return useQuery<T>({ queryKey: key, queryFn: () => get<T>(path), ...options });
}

/** Read a list by pages; `path` has a question mark. */
export function usePages<T>(key: QueryKey, path: string, options?: { staleTime?: number }) {
  return useInfiniteQuery({
    queryKey: key,
    queryFn: ({ pageParam: cursor }) =>
      get<{ items: T[]; next: string | null }>(
        cursor ? `${path}&cursor=${encodeURIComponent(cursor)}` : path,
      ),
    initialPageParam: "",
    getNextPageParam: ({ next }) => next,
    select: ({ pages }) => pages.flatMap(({ items }) => items),
    ...options,
  });
}
