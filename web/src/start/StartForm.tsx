import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";

import { can, useMe } from "../app/session";
import { go, Link } from "../app/url";
import { LazySchemaForm } from "../forms";
import { Bones, Field, Problem } from "../parts";
import type { ModelAnswer, ModelsAnswer, StartedAnswer, WorkflowAnswer } from "../protocol/api";
import { pathOf, post } from "../transport/http";
import { useGet } from "../transport/queries";
import { isCallable, SAMPLE, schemaOf, startRequest } from "./request";
import styles from "./Start.module.css";

/** What a run of a workflow begins with, and which model answers; opens the run that was started. */
export function StartForm({ name }: { name: string }) {
  const me = useMe();
  const isStaff = can(me, "developer") || can(me, "operator");
  const queries = useQueryClient();
  // The same form sent twice starts one run.
  const [key] = useState(() => `start-${Date.now()}-${Math.random()}`);
  const [chosen, setChosen] = useState<string>();
  const workflow = useGet<WorkflowAnswer>(["workflow", name], `/api/workflows${pathOf(name)}`);
  const models = useGet<ModelsAnswer>(["models"], "/api/models", { enabled: isStaff });
  const start = useMutation({
    mutationFn: ({ path, body }: { path: string; body: unknown }) =>
      post<StartedAnswer>(path, body, { key }),
    onSuccess: ({ run }) => {
      void queries.invalidateQueries({ queryKey: ["runs"] });
      go(`/runs${pathOf(run)}`);
    },
  });

  if (workflow.error) return <Problem error={workflow.error} onRetry={() => workflow.refetch()} />;
  if (!workflow.data || models.isLoading) return <Bones lines={3} />;
  const found = workflow.data;
  if (found.kind === "board") {
    return (
      <p>
        A run of a board begins when something is published on it:{" "}
        <Link to={`/board${pathOf(name)}`}>open its board</Link>.
      </p>
    );
  }
  const known = models.data?.items ?? [];
  const model = chosen ?? (!isStaff || isCallable(known, name) ? "" : SAMPLE);
  return (
    <div className={styles.start}>
      {isStaff && <ModelField models={known} value={model} onChange={setChosen} />}
      <LazySchemaForm
        schema={schemaOf(found, isStaff)}
        submitLabel="Start"
        busy={start.isPending}
        error={start.error}
        onSubmit={(value) => start.mutate(startRequest(found, value, model))}
      />
    </div>
  );
}

interface ModelFieldProps {
  models: readonly ModelAnswer[];
  value: string;
  onChange: (model: string) => void;
}

function ModelField({ models, value, onChange }: ModelFieldProps) {
  const standard = models.find((model) => model.is_default);
  const others = models.filter(({ name, problem }) => name !== SAMPLE && problem === null);
  return (
    <Field
      label="Who answers for the agents"
      hint={value === SAMPLE ? "Answers are made up to fit; no key and no money is needed." : undefined}
    >
      {(id, described) => (
        <select
          {...described}
          id={id}
          value={value}
          onChange={(event) => onChange(event.target.value)}
        >
          <option value="">As configured{standard ? `: ${standard.name}` : ""}</option>
          <option value={SAMPLE}>The sample model</option>
          {others.map(({ name }) => (
            <option key={name} value={name}>
              {name}
            </option>
          ))}
        </select>
      )}
    </Field>
  );
}
