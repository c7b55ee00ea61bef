import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import type { FormEvent } from "react";

import { Button, Chip, Code, Field, Problem, Section, Table } from "../../parts";
import type { OfferAnswer, PlanScenarioAnswer } from "../../protocol/api";
import { pathOf, post } from "../../transport/http";
import styles from "./design.module.css";

interface OfferProps {
  run: string;
  offer: OfferAnswer;
  /** The package whose scenarios are shown. */
  name: string;
  onChecked: (offer: OfferAnswer) => void;
}

/** What the checks found in the packages of a design, with what was left out first. */
export function Offer({ run, offer, name, onChecked }: OfferProps) {
  const { left_out, skeleton, errors, questions, checked, folder, promotable } = offer;
  const [reasons, setReasons] = useState<Record<string, string>>({});
  const check = useMutation({
    mutationFn: () => {
      const given = Object.entries(reasons).filter(([, reason]) => reason.trim());
      return post<OfferAnswer>(`/api/plans${pathOf(run)}/offer`, { answers: Object.fromEntries(given) });
    },
    onSuccess: onChecked,
  });
  const scenarios = offer.scenarios.filter((scenario) => scenario.package === name);

  function submit(event: FormEvent) {
    event.preventDefault();
    check.mutate();
  }

  return (
    <form onSubmit={submit} className={styles.part}>
      <Lines title="Left out" lines={left_out.map((each) => `${each.file}: ${each.piece}: ${each.reason}`)} />
      <Lines title="This is a skeleton" lines={skeleton.map(openText)} />
      {!promotable && (
        <p role="status">
          The package cannot be installed yet.{" "}
          {folder && (
            <>
              Its files are in <Code>{folder}</Code>: repair them there
              {questions.length > 0 && ", or say why a difference is meant"}.
            </>
          )}
        </p>
      )}
      <Lines title="Errors" lines={errors} />
      {questions.length > 0 && (
        <Section title="Differences from the plan">
          <div className={styles.part}>
            {questions.map(({ key, text, answer }) =>
              answer ? (
                <p key={key}>
                  {text} <strong>Meant so:</strong> {answer}
                </p>
              ) : (
                <Field key={key} label={text}>
                  {(id, described) => (
                    <input
                      {...described}
                      id={id}
                      placeholder="Meant so, because ..."
                      value={reasons[key] ?? ""}
                      onChange={(event) => setReasons({ ...reasons, [key]: event.target.value })}
                    />
                  )}
                </Field>
              ),
            )}
          </div>
        </Section>
      )}
      {check.error && <Problem error={check.error} />}
      {folder && !promotable && (
        <div>
          <Button type="submit" busy={check.isPending}>
            Check again
          </Button>
        </div>
      )}
      {scenarios.length > 0 && (
        <Section title="Scenarios">
          <Table
            label="Scenarios"
            items={scenarios}
            keyOf={(scenario) => scenario.name}
            columns={[
              { title: "Scenario", cell: (scenario) => scenario.name },
              { title: "Result", cell: (scenario) => <Result scenario={scenario} /> },
              { title: "What differs", cell: ({ differences }) => differences.join("; ") },
            ]}
          />
        </Section>
      )}
      <Lines title="Checked" lines={checked} />
    </form>
  );
}

function Result({ scenario: { differences, rests_on } }: { scenario: PlanScenarioAnswer }) {
  if (differences.length) return <Chip tone="bad">differs</Chip>;
  if (rests_on.length) return <Chip tone="plain">{`needs the code of ${rests_on.join(", ")}`}</Chip>;
  return <Chip tone="good">passed</Chip>;
}

/** A list with a title; nothing if it is empty. */
export function Lines({ title, lines }: { title: string; lines: readonly string[] }) {
  if (lines.length === 0) return null;
  return (
    <Section title={title}>
      <ul className={styles.lines}>
        {lines.map((line) => (
          <li key={line}>{line}</li>
        ))}
      </ul>
    </Section>
  );
}

/** A place that a plan leaves open, without the word that marks it. */
export function openText(place: string): string {
  return place.replace(/^OPEN:?\s*/, "");
}
