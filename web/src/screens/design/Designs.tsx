import { useMutation, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import type { FormEvent } from "react";

import { go, Link } from "../../app/url";
import { Button, Chip, Field, Loaded, Page, Problem, Section, Segmented, Table, Time } from "../../parts";
import type { Tone } from "../../parts";
import type { DesignAnswer, DesignBody, DesignsAnswer, FormAnswer, ModelsAnswer, StartedAnswer } from "../../protocol/api";
import { get, pathOf, post } from "../../transport/http";
import styles from "./design.module.css";
import { TextDraft } from "./TextDraft";

const EXAMPLES = [
  [
    "Support desk",
    "Customers ask about outages, bills or their accounts in a chat. Each question goes to the right specialist: technical, billing or account. If something is unclear, the first agent asks back.",
  ],
  [
    "Invoice approval",
    "When an invoice comes in by a form, one agent reads its lines and another compares them with the purchase order. The finance manager approves it. Nothing is booked before the approval.",
  ],
  [
    "Weekly report",
    "Every Monday at 7 am, collect the news about our products, compare them with last week and write a report of one page for the management.",
  ],
] as const;

/** The designer follows fixed rules and needs no language model. */
const DESIGNER = "designer";

/** Begin a design with a description, or go on with one. */
export function Designs() {
  const runs = useQuery({
    queryKey: ["runs", "designs"],
    queryFn: () => get<DesignsAnswer>("/api/plans"),
  });
  return (
    <Page title="Design">
      <NewDesign />
      <Section title="Designs">
        <Loaded query={runs}>
          {({ items }) => (
            <Table
              label="Designs"
              items={items}
              keyOf={({ run }) => run}
              empty="There is no design yet. Describe a workflow above, or begin with an example."
              columns={[
                {
                  title: "Workflow",
                  cell: ({ run, workflow, preview }) => (
                    <Link to={`/design${pathOf(run)}`}>{workflow || preview || `Run …${run.slice(-6)}`}</Link>
                  ),
                },
                { title: "State", cell: ({ state }) => <Chip tone={toneOf(state)}>{state}</Chip> },
                { title: "Begun by", cell: ({ user }) => user },
                { title: "Begun", cell: ({ started_at }) => <Time at={started_at} /> },
              ]}
            />
          )}
        </Loaded>
      </Section>
    </Page>
  );
}

function toneOf(state: DesignAnswer["state"]): Tone {
  if (state === "working") return "live";
  if (state === "installed") return "good";
  return state.endsWith("waits") || state.endsWith("wait") ? "wait" : "plain";
}

function NewDesign() {
  const [way, setWay] = useState<"words" | "form">("words");
  const [brief, setBrief] = useState("");
  const [isMissing, setMissing] = useState(false);
  const [chosen, setChosen] = useState<string>();
  const models = useQuery({
    queryKey: ["models"],
    queryFn: () => get<ModelsAnswer>("/api/models"),
  });
  const usable = (models.data?.items ?? []).filter(
    ({ name, problem }) => problem === null && name !== "sample" && name !== DESIGNER,
  );
  const model = chosen ?? usable.find(({ is_default }) => is_default)?.name ?? DESIGNER;
  const form = useQuery({
    queryKey: ["form"],
    queryFn: () => get<FormAnswer>("/api/forms/example"),
    enabled: way === "form",
    staleTime: Infinity,
  });
  const { mutate, isPending, error } = useMutation({ mutationFn: () => start({ brief }) });

  async function start(begin: DesignBody) {
    const { run } = await post<StartedAnswer>("/api/plans", { ...begin, model });
    go(`/design${pathOf(run)}`);
  }

  function begin(event: FormEvent) {
    event.preventDefault();
    setMissing(!brief.trim());
    if (brief.trim()) mutate();
  }

  const designer = (
    <Field
      label="Who designs it"
      hint="Without a language model, a form becomes a whole plan, and words become a skeleton that you complete."
    >
      {(id, described) => (
        <select {...described} id={id} value={model} onChange={(event) => setChosen(event.target.value)}>
          <option value={DESIGNER}>Fixed rules, without a language model</option>
          {usable.map(({ name }) => (
            <option key={name}>{name}</option>
          ))}
        </select>
      )}
    </Field>
  );
  const ways = (
    <div>
      <Segmented
        label="How to begin"
        value={way}
        options={[
          { value: "words", label: "Describe it in words" },
          { value: "form", label: "Fill in the form" },
        ]}
        onChange={setWay}
      />
    </div>
  );
  if (way === "form") {
    return (
      <div className={styles.brief}>
        {ways}
        {designer}
        <Loaded query={form} lines={8}>
          {({ text }) => (
            <TextDraft
              path="form.yaml"
              first={text}
              action="Begin the design"
              send={(typed) => start({ form: typed })}
            />
          )}
        </Loaded>
      </div>
    );
  }
  return (
    <form onSubmit={begin} noValidate className={styles.brief}>
      {ways}
      <Field
        label="What should the workflow do?"
        error={isMissing && !brief.trim() ? "Describe the workflow, or begin with an example." : undefined}
        hint="Say who starts it, what happens step by step, who decides, and what must never happen."
      >
        {(id, described) => (
          <textarea
            {...described}
            id={id}
            required
            rows={5}
            value={brief}
            onChange={(event) => setBrief(event.target.value)}
          />
        )}
      </Field>
      <div className={styles.row}>
        {EXAMPLES.map(([name, text]) => (
          <Button key={name} onClick={() => setBrief(text)}>
            {name}
          </Button>
        ))}
      </div>
      {designer}
      {error && <Problem error={error} />}
      <div>
        <Button type="submit" variant="main" busy={isPending}>
          Begin the design
        </Button>
      </div>
    </form>
  );
}
