import { turnUnder } from "../../run/select";
import type { PaneProps } from "./pane";
import styles from "./Panes.module.css";
import { PartChoice, usePart } from "./PartChoice";
import { Prompt } from "./Prompt";
import { Variables } from "./Variables";

const PARTS = { variables: "Variables", prompt: "Prompt" };

/** What the run knows, and what its agent was told. */
export default function ContextPane(props: PaneProps) {
  const part = usePart(PARTS);
  const turn = turnUnder(props.view, props.seq);
  return (
    <div className={styles.page}>
      <div className={styles.head}>
        <PartChoice parts={PARTS} />
        {turn && `as of turn ${turn.number}, ${turn.step || turn.agent}`}
      </div>
      {part === "prompt" ? <Prompt {...props} /> : <Variables {...props} />}
    </div>
  );
}
