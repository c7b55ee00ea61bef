import { useMemo } from "react";

import { agentColor } from "../parts";
import { parseSequence } from "./parse";
import type { Message, Note, Participant, Step } from "./parse";
import styles from "./Sequence.module.css";

/** A Mermaid sequence diagram, drawn; the text itself where it cannot be drawn. */
export function Sequence({ text }: { text: string }) {
  const story = useMemo(() => parseSequence(text), [text]);
  if (!story) return <pre tabIndex={0}>{text}</pre>;
  const { participants, steps } = story;
  return (
    <div className={styles.scroll} tabIndex={0} role="region" aria-label="Sequence">
      <div
        className={styles.sequence}
        style={{ "--count": participants.length, minWidth: participants.length * 136 }}
      >
        <div className={styles.heads} aria-hidden="true">
          {participants.map((participant, index) => (
            <div key={participant.id} className={styles.head} style={colorOf(participants, index)}>
              <strong>{participant.name}</strong>
              {participant.role && <span>{participant.role}</span>}
            </div>
          ))}
        </div>
        <div className={styles.body}>
          {participants.map((participant, index) => (
            <div
              key={participant.id}
              className={styles.life}
              style={{ left: `${((index + 0.5) / participants.length) * 100}%` }}
            />
          ))}
          <Steps steps={steps} participants={participants} />
        </div>
      </div>
    </div>
  );
}

function Steps({ steps, participants }: { steps: Step[]; participants: Participant[] }) {
  return (
    <ol className={styles.steps}>
      {steps.map((step, index) => (
        <li key={index}>
          {step.kind === "message" && <MessageRow message={step} participants={participants} />}
          {step.kind === "note" && <NoteRow note={step} participants={participants} />}
          {step.kind === "block" && (
            <div className={styles.block}>
              {step.branches.map((branch, place) => (
                <div key={place} className={styles.branch}>
                  <p className={styles.condition}>
                    <b>{place === 0 ? step.word : step.word === "par" ? "and" : "else"}</b>{" "}
                    {branch.label}
                  </p>
                  <Steps steps={branch.steps} participants={participants} />
                </div>
              ))}
            </div>
          )}
        </li>
      ))}
    </ol>
  );
}

interface MessageRowProps {
  message: Message;
  participants: Participant[];
}

function MessageRow({ message, participants }: MessageRowProps) {
  const { source, target, text, isDashed } = message;
  const [first, last] = [Math.min(source, target), Math.max(source, target)];
  const shape = [
    source === target ? styles.own : styles.message,
    source > target ? styles.back : "",
    isDashed ? styles.dashed : "",
  ];
  return (
    <div className={styles.row}>
      <div
        className={shape.join(" ")}
        style={{
          // There are two columns for each lifeline, which stands between them.
          gridColumn: `${2 * first + 2} / ${source === target ? 2 * first + 3 : 2 * last + 2}`,
          ...colorOf(participants, source),
        }}
      >
        <span className="unseen">
          {participants[source]?.name} to {participants[target]?.name}:{" "}
        </span>
        <span className={styles.text}>{text}</span>
      </div>
    </div>
  );
}

function NoteRow({ note, participants }: { note: Note; participants: Participant[] }) {
  return (
    <div className={styles.row}>
      <div
        className={styles.note}
        style={{
          gridColumn: `${2 * note.first + 1} / ${2 * note.last + 3}`,
          ...colorOf(participants, note.first),
        }}
      >
        <span className="unseen">{participants[note.first]?.name}: </span>
        {note.lines.map((line) => (
          <span key={line}>{line}</span>
        ))}
      </div>
    </div>
  );
}

/** Persons have no thread; agents have theirs, in their order. */
function colorOf(participants: Participant[], index: number) {
  const people = participants.slice(0, index).filter((one) => one.isPerson).length;
  const isPerson = participants[index]?.isPerson;
  return { "--thread": isPerson ? "var(--edge)" : agentColor(index - people) };
}
