import type { ReactNode } from "react";

import { Chip } from "../parts";
import type { FindingAnswer } from "../protocol/api";
import { Explanation } from "./Explanation";
import styles from "./FindingList.module.css";
import { countOf, fixTitle, groupByRule, placeOf } from "./findings";
import type { RuleFindings } from "./findings";

export interface FindingListProps {
  findings: readonly FindingAnswer[];
  /** The name of the package: places are shown without it. */
  name: string;
  /** The place of a finding as a link. */
  place?: (finding: FindingAnswer, text: string) => ReactNode;
  actions?: (rule: RuleFindings) => ReactNode;
}

/** What the checker found, by rule: where, why, and what to do. */
export function FindingList({ findings, name, place, actions }: FindingListProps) {
  return (
    <div className={styles.list}>
      {groupByRule(findings).map((rule) => (
        <section key={rule.code} className={styles.rule} aria-label={rule.code}>
          <header className={styles.header}>
            <code>{rule.code}</code>
            <Chip tone={rule.severity === "error" ? "bad" : "wait"}>
              {countOf(rule.findings.length, rule.severity)}
            </Chip>
            {actions?.(rule)}
          </header>
          <ul>
            {rule.findings.map((finding, index) => (
              <li key={index}>
                <p className={styles.message}>{finding.message}</p>
                <p className={styles.place}>
                  {place?.(finding, placeOf(finding, name)) ?? placeOf(finding, name)}
                </p>
                {finding.cause.map((line) => (
                  <p key={line}>{line}</p>
                ))}
                {finding.hint.map((line) => (
                  <p key={line} className={styles.hint}>
                    {line}
                  </p>
                ))}
                {fixTitle(finding) && <p className={styles.hint}>Safe fix: {fixTitle(finding)}</p>}
              </li>
            ))}
          </ul>
          <Explanation code={rule.code} />
        </section>
      ))}
    </div>
  );
}

/** How many errors and warnings. */
export function Health({ errors, warnings }: { errors: number; warnings: number }) {
  if (errors) return <Chip tone="bad">{countOf(errors, "error")}</Chip>;
  if (warnings) return <Chip tone="wait">{countOf(warnings, "warning")}</Chip>;
  return <Chip tone="good">no findings</Chip>;
}
