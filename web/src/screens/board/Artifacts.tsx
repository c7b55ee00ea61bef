import { keepPreviousData, useInfiniteQuery } from "@tanstack/react-query";
import { useState } from "react";
import type { KeyboardEvent } from "react";

import { Link, setQuery, useRoute } from "../../app/url";
import {
  agentColor,
  Bones,
  Button,
  Chip,
  Empty,
  Problem,
  Rows,
  Splitter,
  Time,
  valueText,
} from "../../parts";
import type { ArtifactAnswer, ArtifactsAnswer, CorrelationAnswer } from "../../protocol/api";
import { get, pathOf } from "../../transport/http";
import { useGet } from "../../transport/queries";
import { Artifact } from "./Artifact";
import styles from "./board.module.css";
import { apiOf, boardLink, producerName, useAgents, useChanges, useTypes } from "./data";

type Filters = Record<string, string>;

const LABELS = {
  type: "Type",
  producer: "Producer",
  agent: "Seen by",
  since: "Time",
  text: "Text in the payload",
  tag: "Tag",
  correlation: "Correlation",
};
const FILTERS = Object.keys(LABELS);

const HOUR = 3_600_000;
const TIMES: Record<string, number> = { "last hour": HOUR, "last day": 24 * HOUR, "last week": 168 * HOUR };
const PAGE = 100;
const PREVIEW = 200;

interface ArtifactsProps {
  board: string;
  onPublish: () => void;
}

/** What is on a board, newest first; the filters are in the address. */
export function Artifacts({ board, onPublish }: ArtifactsProps) {
  const { path, query } = useRoute();
  const agents = useAgents(board).data?.items.map(({ agent }) => agent) ?? [];
  const filters: Filters = Object.fromEntries([...query].filter(([name]) => FILTERS.includes(name)));
  const found = useInfiniteQuery({
    queryKey: ["board", board, "artifacts", filters],
    queryFn: ({ pageParam }) =>
      get<ArtifactsAnswer>(`${apiOf(board, "artifacts")}?${searchOf(filters, pageParam)}`),
    initialPageParam: "",
    getNextPageParam: (page) => page.next,
    placeholderData: keepPreviousData,
  });
  // The stream of changes begins with the first answer; later ones do not begin it again.
  const [after, setAfter] = useState<string>();
  if (after === undefined && found.data?.pages[0]) setAfter(found.data.pages[0].changes);
  useChanges(board, after);

  const items = found.data?.pages.flatMap((page) => page.items);
  const id = path[2];
  const list = (
    <div className={styles.list}>
      <FilterBar board={board} agents={agents} filters={filters} />
      {filters.correlation && <Correlation board={board} id={filters.correlation} />}
      {found.error && <Problem error={found.error} onRetry={() => found.refetch()} />}
      {found.isPending && <Bones lines={6} />}
      {items?.length === 0 && <Nothing filters={filters} onPublish={onPublish} />}
      {items && items.length > 0 && (
        <Rows
          label="Artifacts"
          items={items}
          keyOf={(item) => item.id}
          estimate={56}
          render={(item) => (
            <Link
              to={boardLink(board, filters, item.id)}
              aria-current={item.id === id || undefined}
              className={styles.row}
              style={{ "--thread": colorOf(agents.indexOf(item.produced_by)) }}
            >
              <Summary item={item} />
            </Link>
          )}
        />
      )}
      {found.hasNextPage && (
        <Button busy={found.isFetchingNextPage} onClick={() => found.fetchNextPage()}>
          Show older artifacts
        </Button>
      )}
    </div>
  );
  if (!id) return list;
  const artifact = <Artifact key={id} board={board} id={id} closeTo={boardLink(board, filters)} />;
  return <Splitter name="the artifacts" left={list} right={artifact} />;
}

function searchOf(filters: Filters, cursor: string): URLSearchParams {
  const search = new URLSearchParams({ ...filters, limit: String(PAGE) });
  search.delete("since");
  const span = TIMES[filters.since ?? ""];
  if (span) search.set("since", String(Date.now() - span));
  if (cursor) search.set("cursor", cursor);
  return search;
}

function colorOf(index: number): string {
  return index < 0 ? "var(--edge)" : agentColor(index);
}

function Summary({ item }: { item: ArtifactAnswer }) {
  return (
    <>
      <span className={styles.head}>
        <strong>{item.type}</strong>
        <span className={styles.note}>{producerName(item.produced_by)}</span>
        {item.tags.map((tag) => (
          <Chip key={tag} tone="plain">
            {tag}
          </Chip>
        ))}
        <span className={styles.when}>
          <Time at={item.created_at} />
        </span>
      </span>
      <span className={styles.preview}>{valueText(item.payload).slice(0, PREVIEW)}</span>
    </>
  );
}

function Nothing({ filters, onPublish }: { filters: Filters; onPublish: () => void }) {
  if (Object.keys(filters).length > 0) {
    return <Empty title="Nothing fits these filters" />;
  }
  return (
    <Empty
      title="Nothing is on this board yet"
      action={<Button onClick={onPublish}>Publish an artifact</Button>}
    >
      What you publish wakes the agents that consume it.
    </Empty>
  );
}

interface FilterBarProps {
  board: string;
  agents: string[];
  filters: Filters;
}

function FilterBar({ board, agents, filters }: FilterBarProps) {
  const choices = {
    type: useTypes(board).data?.items.map(({ type }) => type) ?? [],
    producer: agents,
    agent: agents,
    since: Object.keys(TIMES),
  };
  return (
    <div role="search" aria-label="Filters" className={styles.filters}>
      {Object.entries(LABELS).map(([name, label]) => {
        const value = filters[name] ?? "";
        if (!(name in choices)) return <TextFilter key={`${name} ${value}`} {...{ name, label, value }} />;
        const options = new Set([...choices[name as keyof typeof choices], ...(value ? [value] : [])]);
        if (options.size === 0) return null;
        return (
          <select
            key={name}
            aria-label={label}
            value={value}
            onChange={(event) => setQuery({ [name]: event.target.value || null })}
          >
            <option value="">{label}: any</option>
            {[...options].map((option) => (
              <option key={option} value={option}>
                {label}: {producerName(option)}
              </option>
            ))}
          </select>
        );
      })}
      {Object.keys(filters).length > 0 && (
        <Button
          variant="bare"
          onClick={() => setQuery(Object.fromEntries(FILTERS.map((name) => [name, null])))}
        >
          Clear filters
        </Button>
      )}
    </div>
  );
}

/** A filter that is applied by Enter, or when the field is left. */
function TextFilter({ name, label, value }: { name: string; label: string; value: string }) {
  const [text, setText] = useState(value);
  const apply = () => setQuery({ [name]: text.trim() || null });
  return (
    <input
      type="search"
      aria-label={label}
      placeholder={label}
      value={text}
      onChange={(event) => setText(event.target.value)}
      onBlur={apply}
      onKeyDown={(event: KeyboardEvent) => event.key === "Enter" && apply()}
    />
  );
}

const STATES = {
  active: ["live", "agents work"],
  idle: ["plain", "nothing is left to do"],
  completed: ["good", "completed"],
  failed: ["bad", "failed"],
  cancelled: ["plain", "stopped"],
} as const;

/** How far the correlation is whose artifacts are listed. */
function Correlation({ board, id }: { board: string; id: string }) {
  const path = `/api/correlations${pathOf(id)}?workflow=${encodeURIComponent(board)}`;
  const found = useGet<CorrelationAnswer>(["board", board, "correlation", id], path);
  if (!found.data) return null;
  const [tone, words] = STATES[found.data.status];
  return (
    <p className={styles.head}>
      <Chip tone={tone}>{words}</Chip>
      <Link to={`/runs${pathOf(found.data.run)}`}>Open the run of this correlation</Link>
    </p>
  );
}
