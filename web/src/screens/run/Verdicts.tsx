import { rulesOf, readSpec } from "../../graph/spec";
import { Chip, Code } from "../../parts";
import type { PackageAnswer } from "../../protocol/api";
import type { HandoffItem } from "../../run/view";
import styles from "./Panes.module.css";

interface VerdictsProps {
  pack: PackageAnswer;
  agent: string;
  /** What was decided; without it no rule has been asked. */
  handoff?: Pick<HandoffItem, "rule" | "evaluated">;
}

/** The rules of an agent in the order in which they are asked, and what came of each. */
export function Verdicts({ pack, agent, handoff }: VerdictsProps) {
  const rules = rulesOf(readSpec(pack.spec)).filter((rule) => rule.source === agent);
  return (
    <ol className={styles.rules} aria-label={`Rules of ${agent}`}>
      {rules.map(({ index, words, target, isBefore }) => {
        const verdict = handoff?.evaluated[index];
        const isTaken = handoff?.rule === index;
        const word = isTaken ? "taken" : verdict === undefined ? "not asked" : String(verdict);
        return (
          <li key={index} className={isTaken ? styles.taken : undefined}>
            <Code>{words}</Code>
            <span>
              → {target}
              {isBefore && ", before its turn"}
            </span>
            <Chip tone={isTaken ? "good" : "plain"}>{word}</Chip>
          </li>
        );
      })}
    </ol>
  );
}
