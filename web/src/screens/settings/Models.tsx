import { useMutation } from "@tanstack/react-query";

import { Button, Chip, Code, Cost, Duration, Loaded, Problem, Section, Table, Tokens } from "../../parts";
import type { ModelAnswer, ModelsAnswer, ModelTestAnswer } from "../../protocol/api";
import { SAMPLE } from "../../start/request";
import { pathOf, post } from "../../transport/http";
import { useGet } from "../../transport/queries";
import styles from "./Settings.module.css";

/** The models that settings and packages name, each with a test call. */
export function Models() {
  const models = useGet<ModelsAnswer>(["models"], "/api/models");
  return (
    <Section title="Models">
      <Loaded query={models}>
        {({ items }) => (
          <Table
            label="Models"
            items={items}
            keyOf={({ name }) => name}
            empty="No model is configured. Set WEFT_MODEL, or start runs with the sample model."
            columns={[
              {
                title: "Name",
                cell: ({ name, is_default, is_fallback }) => (
                  <span className={styles.chips}>
                    <Code>{name}</Code>
                    {is_default && <Chip tone="plain">default</Chip>}
                    {is_fallback && <Chip tone="plain">fallback</Chip>}
                  </span>
                ),
              },
              { title: "Named by", cell: ({ workflows }) => workflows.join(", ") || "the settings" },
              { title: "Test", cell: (model) => <ModelTest model={model} /> },
            ]}
          />
        )}
      </Loaded>
      <p className={styles.note}>
        Keys are read from the environment and are never shown. A test is one call with a short
        question.
      </p>
    </Section>
  );
}

function ModelTest({ model: { name, problem } }: { model: ModelAnswer }) {
  const test = useMutation({
    mutationFn: () => post<ModelTestAnswer>(`/api/models${pathOf(name)}/test`),
  });
  if (problem) {
    return (
      <>
        <Chip tone="bad">cannot be called</Chip> {problem}
      </>
    );
  }
  if (name === SAMPLE) return "Its answers are made up: it needs no key and no test.";
  return (
    <div className={styles.test}>
      <Button busy={test.isPending} aria-label={`Test ${name}`} onClick={() => test.mutate()}>Test</Button>
      {test.data && (
        <span role="status">
          <Chip tone="good">replied</Chip> “{test.data.text}” after{" "}
          <Duration ms={test.data.milliseconds} />,{" "}
          <Tokens input={test.data.input_tokens} output={test.data.output_tokens} /> tokens,{" "}
          <Cost usd={test.data.cost_usd} />
        </span>
      )}
      {test.error !== null && <Problem error={test.error} />}
    </div>
  );
}
