import { Link } from "../../app/url";
import { agentColor, Button, Chip, Empty, Time } from "../../parts";
import { Fields } from "../../requests/Payload";
import { eventsOf, headAt, itemsAt, threadOf, turnsAt } from "../../run/select";
import type { ArtifactItem } from "../../run/view";
import { pathOf } from "../../transport/http";
import type { PaneProps } from "./pane";
import styles from "./Panes.module.css";

/** The artifacts of this run: who made them, and whom they woke. */
export default function BoardPane(props: PaneProps) {
  const { view, seq, setAt } = props;
  const artifacts = itemsAt(view, seq).filter((item) => item.kind === "artifact");
  const missed = eventsOf(view, "DeliveryMissed", seq);
  const board = headAt(view, seq)?.workflow ?? "";
  if (artifacts.length === 0) return <Empty title="No artifact was published up to here." />;
  return (
    <div className={styles.page}>
      <ol className={styles.plain}>
        {artifacts.map((artifact) => (
          <Artifact key={artifact.seq} {...props} artifact={artifact} />
        ))}
      </ol>
      {missed.map(({ seq: at, data }) => (
        <p key={at} className={styles.line}>
          {data.subscription} was not woken: {data.why.replaceAll("_", " ")} {data.detail}
          <Button variant="link" onClick={() => setAt(at)}>
            event {at}
          </Button>
        </p>
      ))}
      <Link to={`/board${pathOf(board)}`}>Open the whole board</Link>
    </div>
  );
}

function Artifact({ artifact, view, seq, setAt }: PaneProps & { artifact: ArtifactItem }) {
  const { type, by, payload, wakes, arrived } = artifact;
  const takers = turnsAt(view, seq).filter((turn) => turn.inputs.includes(artifact.id));
  const waiting = wakes.filter((name) => !takers.some((turn) => turn.step === name));
  const isAgent = view.agents.until(seq).some(({ agent }) => agent === by);
  return (
    <li className={styles.card} style={{ "--thread": isAgent ? agentColor(threadOf(view, by)) : "var(--edge)" }}>
      <header className={styles.line}>
        <h3>{type}</h3>
        by {by || "nobody"}
        {arrived && ", in another run"}
        <Button variant="link" onClick={() => setAt(artifact.seq)}>
          event {artifact.seq}
        </Button>
        <Time at={artifact.ts} />
      </header>
      <Fields values={payload} />
      {takers.length + waiting.length > 0 && (
        <p className={styles.line}>
          woke
          {takers.map((turn) => (
            <Button key={turn.number} variant="link" onClick={() => setAt(turn.seq)}>
              {turn.agent}, turn {turn.number}
            </Button>
          ))}
          {waiting.map((name) => (
            <Chip key={name} tone="plain">
              {name} waits
            </Chip>
          ))}
        </p>
      )}
    </li>
  );
}
