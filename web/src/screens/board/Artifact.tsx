import { useQuery } from "@tanstack/react-query";
import { X } from "lucide-react";
import type { ReactNode } from "react";

import { can, useMe } from "../../app/session";
import { go, Link, setQuery, useRoute } from "../../app/url";
import { Button, Chip, Facts, Loaded, Section, Time, Value } from "../../parts";
import type {
  EventsAnswer,
  TurnInspection,
  VisibilityAnswer,
  WholeArtifactAnswer,
  WhyAnswer,
} from "../../protocol/api";
import { Fields } from "../../requests/Payload";
import { get, pathOf } from "../../transport/http";
import { useGet } from "../../transport/queries";
import styles from "./board.module.css";
import { apiOf, boardLink, producerName, useAgents } from "./data";

interface ArtifactProps {
  board: string;
  id: string;
  closeTo: string;
}

interface PartProps {
  board: string;
  artifact: WholeArtifactAnswer;
}

/** One artifact: what it says, where it comes from, who got it and who may see it. */
export function Artifact({ board, id, closeTo }: ArtifactProps) {
  const isDeveloper = can(useMe(), "developer");
  const found = useGet<WholeArtifactAnswer>(["board", board, "artifact", id], apiOf(board, "artifacts", id));
  const close = (
    <Button variant="bare" icon={<X />} aria-label="Close the artifact" onClick={() => go(closeTo)} />
  );
  return (
    <div className={styles.artifact}>
      <Section title={found.data?.type ?? "Artifact"} actions={close}>
        <Loaded query={found}>{(artifact) => <About board={board} artifact={artifact} />}</Loaded>
      </Section>
      {found.data && (
        <Section title="Payload">
          <Payload value={found.data.payload} />
        </Section>
      )}
      {found.data && isDeveloper && <Lineage board={board} artifact={found.data} />}
      {found.data && isDeveloper && <Why board={board} artifact={found.data} />}
    </div>
  );
}

function Payload({ value }: { value: unknown }) {
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    return <Value value={value} max={280} />;
  }
  return <Fields values={value as Record<string, unknown>} />;
}

function About({ board, artifact }: PartProps) {
  const { correlation_id: correlation, run, seq, tags, visibility } = artifact;
  return (
    <Facts
      values={{
        "Published by": producerName(artifact.produced_by),
        Published: <Time at={artifact.created_at} />,
        Run: run !== undefined && <Link to={`/runs${pathOf(run)}?at=${seq}`}>Event {seq}</Link>,
        Correlation: <Link to={boardLink(board, { correlation }, artifact.id)}>{correlation}</Link>,
        "Seen by": visibility !== undefined && audience(visibility),
        Tags: tags.length > 0 && tags.join(", "),
        Partition: artifact.partition_key,
      }}
    />
  );
}

function audience({ policy, names, visible_at }: VisibilityAnswer): ReactNode {
  const words = {
    public: "everybody who may read the board",
    tenant: `the tenant ${names.join(", ")}`,
    private: `only ${names.join(", ")}`,
    labelled: `agents with the label ${names.join(" or ")}`,
    hidden: "nobody",
  }[policy];
  if (visible_at <= Date.now()) return words;
  return (
    <>
      {words}, from <Time at={visible_at} /> on
    </>
  );
}

/** What it was made from, and whom it has woken. */
function Lineage({ board, artifact: { run = "", seq = 0, consumed = [] } }: PartProps) {
  const inputs = useQuery({
    queryKey: ["inputs", run, seq],
    queryFn: async () => {
      const { items } = await get<EventsAnswer>(`/api/runs${pathOf(run)}/events?after=${seq - 1}&limit=1`);
      const turn = items[0]?.turn ?? 0;
      if (turn === 0) return [];
      const found = await get<TurnInspection>(`/api/runs${pathOf(run)}/prompts/${turn}`);
      return found.record.board?.inputs ?? [];
    },
  });
  return (
    <>
      <Section title="Derived from">
        <Loaded query={inputs} lines={1}>
          {(refs) => (
            <ul className={styles.names}>
              {refs.length === 0 && <li className={styles.note}>Nothing: it came from outside.</li>}
              {refs.map(({ id, type }) => (
                <li key={id}>{id ? <Link to={boardLink(board, {}, id)}>{type}</Link> : type}</li>
              ))}
            </ul>
          )}
        </Loaded>
      </Section>
      <Section title="Consumed by">
        <ul className={styles.names}>
          {consumed.length === 0 && <li className={styles.note}>No agent so far.</li>}
          {consumed.map(({ agent, run: where, turn, at }) => (
            <li key={`${where} ${turn}`}>
              <Link to={`/runs${pathOf(where)}`}>{agent}</Link> in turn {turn}, <Time at={at} />
            </li>
          ))}
        </ul>
      </Section>
    </>
  );
}

/** Whether an agent may see it, whether it got it, and why not. */
function Why({ board, artifact }: PartProps) {
  const agents = useAgents(board).data?.items ?? [];
  const asked = useRoute().query.get("why") ?? "";
  const path = `${apiOf(board, "artifacts", artifact.id, "why")}?agent=${encodeURIComponent(asked)}`;
  const why = useGet<WhyAnswer>(["board", board, "why", artifact.id, asked], path, {
    enabled: asked !== "",
  });
  const agent = agents.find(({ agent: name }) => name === asked);
  const turn = artifact.consumed?.find(({ agent: name }) => name === asked)?.turn;
  const waiting = agent?.waiting.find(({ artifacts }) => artifacts.some(({ id }) => id === artifact.id));

  function wokenWords(): string {
    if (turn !== undefined) return `It woke ${asked} in turn ${turn}.`;
    if (waiting) return `It has not woken ${asked} yet, which waits ${waiting.what}.`;
    const isConsumed = agent?.consumes.includes(artifact.type);
    if (isConsumed) return `It has not woken ${asked}: it does not fit what ${asked} subscribes to.`;
    return `It does not wake ${asked}, which consumes no ${artifact.type}.`;
  }

  return (
    <Section title="Did an agent get it?">
      <select
        aria-label="Agent"
        value={asked}
        onChange={(event) => setQuery({ why: event.target.value || null })}
      >
        <option value="">Choose an agent</option>
        {agents.map(({ agent: name }) => (
          <option key={name}>{name}</option>
        ))}
      </select>
      {asked && (
        <Loaded query={why} lines={1}>
          {({ visible, reason }) => (
            <ul className={styles.names} aria-live="polite">
              <li>
                <Chip tone={visible ? "good" : "bad"}>{visible ? "may see it" : "may not see it"}</Chip>{" "}
                {reason}
              </li>
              <li>{wokenWords()}</li>
            </ul>
          )}
        </Loaded>
      )}
    </Section>
  );
}
