import { useMutation } from "@tanstack/react-query";
import { useState } from "react";

import { Link } from "../../app/url";
import { FindingList } from "../../packages/FindingList";
import { countOf, fileOf } from "../../packages/findings";
import { Button, Chip, Empty, Loaded, Problem, Section, Table } from "../../parts";
import type { ScenarioResultAnswer, ScenarioResultsAnswer, ScenariosAnswer } from "../../protocol/api";
import { pathOf, post } from "../../transport/http";
import { useGet } from "../../transport/queries";
import { placeUrl } from "./words";
import styles from "./workflows.module.css";

/** The scenarios of a package, and what was otherwise when they were run. */
export function TestsTab({ name }: { name: string }) {
  const path = `/api/workflows${pathOf(name)}/tests`;
  const scenarios = useGet<ScenariosAnswer>(["workflow", name, "tests"], path);
  const [results, setResults] = useState<ScenarioResultAnswer[]>([]);
  const tried = useMutation({
    mutationFn: (only: string | null) => post<ScenarioResultsAnswer>(path, { name: only }),
    onSuccess: ({ items }) =>
      setResults((before) => [
        ...before.filter((old) => items.every((item) => item.name !== old.name)),
        ...items,
      ]),
  });
  const failed = results.filter(({ passed }) => !passed);
  const resultOf = (scenario: string) => results.find((result) => result.name === scenario);
  return (
    <div className={styles.tab}>
      <Loaded query={scenarios}>
        {({ items }) =>
          items.length === 0 ? (
            <Empty title="No tests">
              Save a run as a test in its menu, or write a scenario in the folder tests of the package.
            </Empty>
          ) : (
            <>
              <div className={styles.tried}>
                <Button variant="main" busy={tried.isPending} onClick={() => tried.mutate(null)}>
                  Run all tests
                </Button>
                <span role="status">
                  {results.length > 0 && (
                    <Chip tone={failed.length ? "bad" : "good"}>
                      {failed.length ? `${failed.length} failed` : `${countOf(results.length, "test")} passed`}
                    </Chip>
                  )}
                </span>
              </div>
              {tried.error !== null && <Problem error={tried.error} />}
              <Table
                label="Tests"
                items={items}
                keyOf={(scenario) => scenario.name}
                columns={[
                  {
                    title: "Test",
                    cell: (scenario) => <Link to={placeUrl(name, scenario.path, 1)}>{scenario.name}</Link>,
                  },
                  { title: "What it shows", cell: ({ description }) => description },
                  { title: "Result", cell: (scenario) => <Result passed={resultOf(scenario.name)?.passed} /> },
                ]}
                actions={(scenario) => ({ Run: () => tried.mutate(scenario.name) })}
              />
            </>
          )
        }
      </Loaded>
      {failed.map((result) => (
        <Section key={result.name} title={`What differs in ${result.name}`}>
          <FindingList
            findings={result.findings}
            name={name}
            place={(finding, text) => (
              <Link to={placeUrl(name, fileOf(finding, name), finding.line)}>{text}</Link>
            )}
          />
        </Section>
      ))}
    </div>
  );
}

function Result({ passed }: { passed?: boolean }) {
  if (passed === undefined) return <Chip tone="plain">not run</Chip>;
  return passed ? <Chip tone="good">passed</Chip> : <Chip tone="bad">failed</Chip>;
}
