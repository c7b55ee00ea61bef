import { useMemo } from "react";

import { setQuery, useRoute } from "../../app/url";
import { readSpec } from "../../graph/spec";
import WorkflowGraph from "../../graph/WorkflowGraph";
import { Bones, Button } from "../../parts";
import { eventsOf, turnsAt } from "../../run/select";
import { liveAt } from "./live";
import type { PaneProps } from "./pane";
import styles from "./Panes.module.css";
import { Verdicts } from "./Verdicts";

const TURNS_SHOWN = 12;

/** The workflow as a picture, and how far the run has come in it. */
export default function GraphPane({ view, seq, setAt, pack }: PaneProps) {
  const chosen = useRoute().query.get("node");
  const live = useMemo(() => pack && liveAt(view, seq, pack), [view, seq, pack]);
  if (!pack || !live) return <Bones lines={4} />;
  const handoffs = eventsOf(view, "HandedOff", seq);
  const shown = chosen ?? handoffs.at(-1)?.data.source ?? "";
  const turns = turnsAt(view, seq).filter((turn) => turn.agent === chosen || turn.step === chosen);
  const hasRules = readSpec(pack.spec).handoffs?.some((rule) => rule.source_agent === shown);
  return (
    <div className={styles.pane}>
      <div className={styles.graph}>
        <WorkflowGraph
          spec={pack.spec}
          live={live}
          selected={chosen}
          onSelect={(node) => setQuery({ node: node === chosen ? null : node })}
        />
      </div>
      {(hasRules || turns.length > 0) && (
        <section className={styles.below}>
          {turns.length > 0 && (
            <p className={styles.line}>
              <b>{chosen}</b>
              {turns.slice(-TURNS_SHOWN).map((turn) => (
                <Button key={turn.number} variant="link" onClick={() => setAt(turn.seq)}>
                  turn {turn.number}
                </Button>
              ))}
            </p>
          )}
          {hasRules && (
            <>
              <h3>Rules of {shown}, in the order they are asked</h3>
              <Verdicts
                pack={pack}
                agent={shown}
                handoff={handoffs.findLast(({ data }) => data.source === shown)?.data}
              />
            </>
          )}
        </section>
      )}
    </div>
  );
}
