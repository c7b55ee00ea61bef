import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import type { FormEvent } from "react";

import { Button, Empty, Loaded, Problem, Table } from "../../parts";
import type { CollectionsAnswer, PassagesAnswer } from "../../protocol/api";
import { pathOf, post } from "../../transport/http";
import { useGet } from "../../transport/queries";
import styles from "./board.module.css";

/** The collections of passages that agents search. */
export function Knowledge() {
  const collections = useGet<CollectionsAnswer>(["collections"], "/api/collections");
  return (
    <Loaded query={collections}>
      {({ items }) => {
        const names = items.map(({ collection }) => collection);
        if (names.length > 0) return <Search names={names} />;
        return (
          <Empty title="There are no collections yet" action={<code>weft collection add NAME FILES</code>}>
            Agents search collections for passages.
          </Empty>
        );
      }}
    </Loaded>
  );
}

/** What a query would find for an agent. */
function Search({ names }: { names: string[] }) {
  const [name = "", setName] = useState(names[0]);
  const [query, setQuery] = useState("");
  const found = useMutation({
    mutationFn: () => post<PassagesAnswer>(`/api/collections${pathOf(name)}/search`, { query }),
  });
  function search(event: FormEvent) {
    event.preventDefault();
    found.mutate();
  }
  return (
    <div className={styles.view}>
      <form className={styles.filters} onSubmit={search}>
        <select aria-label="Collection" value={name} onChange={(event) => setName(event.target.value)}>
          {names.map((each) => (
            <option key={each}>{each}</option>
          ))}
        </select>
        <input
          type="search"
          aria-label="Query"
          placeholder="What a query would find"
          required
          value={query}
          onChange={(event) => setQuery(event.target.value)}
        />
        <Button type="submit" busy={found.isPending}>
          Search
        </Button>
      </form>
      {found.error && <Problem error={found.error} />}
      {found.data && (
        <Table
          label="Passages"
          items={found.data.items}
          keyOf={(_, index) => index}
          empty="No passage fits."
          columns={[
            { title: "Relevance", cell: ({ score }) => <span className="number">{score.toFixed(2)}</span> },
            { title: "Source", cell: ({ source_id }) => source_id },
            { title: "Passage", cell: ({ content }) => content },
          ]}
        />
      )}
    </div>
  );
}
