import { Link } from "../../app/url";
import { Chip, Loaded, Table } from "../../parts";
import type { AgentAnswer } from "../../protocol/api";
import { pathOf } from "../../transport/http";
import styles from "./board.module.css";
import { boardLink, useAgents } from "./data";

/** Who works on a board, what wakes them, and what they wait for. */
export function Agents({ board }: { board: string }) {
  return (
    <div className={styles.view}>
      <Loaded query={useAgents(board)} lines={6}>
        {({ items, runs }) => (
          <>
            <Table
              label="Agents"
              items={items}
              keyOf={({ agent }) => agent}
              empty="This board has no agents yet."
              columns={[
                {
                  title: "Agent",
                  cell: ({ agent }) => <Link to={boardLink(board, { producer: agent })}>{agent}</Link>,
                },
                { title: "Labels", cell: ({ labels }) => labels.join(", ") },
                { title: "Consumes", cell: ({ consumes }) => <Types board={board} types={consumes} /> },
                { title: "Publishes", cell: ({ publishes }) => <Types board={board} types={publishes} /> },
                { title: "Now", cell: (agent) => <Now board={board} agent={agent} /> },
              ]}
            />
            <p className={styles.note}>
              {runs === 0 ? "No correlation is open." : `Now: in the open correlations, the newest ${runs}.`}
            </p>
          </>
        )}
      </Loaded>
    </div>
  );
}

function Types({ board, types }: { board: string; types: string[] }) {
  return (
    <ul className={styles.names}>
      {types.map((type) => (
        <li key={type}>
          <Link to={boardLink(board, { type })}>{type}</Link>
        </li>
      ))}
    </ul>
  );
}

function Now({ board, agent: { active, waiting } }: { board: string; agent: AgentAnswer }) {
  if (active.length + waiting.length === 0) return <span className={styles.note}>rests</span>;
  return (
    <ul className={styles.names}>
      {active.map((run, index) => (
        <li key={index}>
          <Chip tone="live">works</Chip> <Link to={`/runs${pathOf(run)}`}>Open the run</Link>
        </li>
      ))}
      {waiting.map(({ run, what, artifacts }, index) => (
        <li key={index}>
          <Chip tone="wait">waits {what}</Chip> <Link to={`/runs${pathOf(run)}`}>Open the run</Link>
          {artifacts.map(({ id, type }) => (
            <Link key={id} to={boardLink(board, {}, id)}>
              {type}
            </Link>
          ))}
        </li>
      ))}
    </ul>
  );
}
