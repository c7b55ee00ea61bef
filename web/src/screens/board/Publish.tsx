import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";

import { go } from "../../app/url";
import { LazySchemaForm } from "../../forms";
import { Bones, Dialog, Field, Problem } from "../../parts";
import type { ArtifactBody, PublishedAnswer } from "../../protocol/api";
import { post } from "../../transport/http";
import styles from "./board.module.css";
import { apiOf, boardLink, useAgents, useTypes } from "./data";

/** A form from the schema of a type; what it makes goes on the board. */
export function Publish({ board, onClose }: { board: string; onClose: () => void }) {
  const types = useTypes(board);
  const agents = useAgents(board).data?.items;
  const queries = useQueryClient();
  const [name, setName] = useState("");
  const [tags, setTags] = useState("");
  const [correlation, setCorrelation] = useState("");
  // Sent again after a lost answer, it is published once.
  const [key] = useState(() => `publish-${Date.now()}-${Math.random()}`);
  const publish = useMutation({
    mutationFn: (body: ArtifactBody) => post<PublishedAnswer>(apiOf(board, "artifacts"), body, { key }),
    onSuccess: ({ artifact }) => {
      void queries.invalidateQueries({ queryKey: ["board", board] });
      onClose();
      go(boardLink(board, {}, artifact));
    },
  });
  const items = types.data?.items ?? [];
  const chosen = items.find(({ type }) => type === name) ?? items[0];
  const woken = agents?.filter(({ consumes }) => chosen && consumes.includes(chosen.type));
  const hint = woken?.length
    ? `Wakes ${woken.map(({ agent }) => agent).join(", ")}, if it fits what they subscribe to.`
    : woken && "No agent consumes this type.";

  function send(type: string, payload: unknown) {
    const named = tags.split(",").map((tag) => tag.trim());
    publish.mutate({
      type,
      payload,
      tags: named.filter(Boolean),
      correlation: correlation.trim() || null,
    });
  }

  return (
    <Dialog open title={`Publish on ${board}`} onClose={onClose}>
      {types.error && <Problem error={types.error} onRetry={() => types.refetch()} />}
      {types.isPending && <Bones />}
      {chosen && (
        <div className={styles.view}>
          <Field label="Type" hint={hint}>
            {(id, described) => (
              <select {...described} id={id} value={chosen.type} onChange={(event) => setName(event.target.value)}>
                {items.map(({ type }) => (
                  <option key={type}>{type}</option>
                ))}
              </select>
            )}
          </Field>
          <Field label="Tags" hint="Separated by commas.">
            {(id, described) => (
              <input {...described} id={id} value={tags} onChange={(event) => setTags(event.target.value)} />
            )}
          </Field>
          <Field label="Correlation" hint="The one that it joins; otherwise it begins its own.">
            {(id, described) => (
              <input
                {...described}
                id={id}
                value={correlation}
                onChange={(event) => setCorrelation(event.target.value)}
              />
            )}
          </Field>
          <LazySchemaForm
            key={chosen.type}
            schema={chosen.schema}
            submitLabel="Publish"
            onSubmit={(payload) => send(chosen.type, payload)}
            busy={publish.isPending}
            error={publish.error}
          />
        </div>
      )}
    </Dialog>
  );
}
