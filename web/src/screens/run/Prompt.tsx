import { useQuery } from "@tanstack/react-query";
import { ChevronRight } from "lucide-react";
import { useState } from "react";

import { Diff } from "../../packages/Diff";
import { Button, Chip, CopyButton, Empty, Loaded, Problem, valueText } from "../../parts";
import type { Prompt as PromptAnswer, Segment, TurnInspection } from "../../protocol/api";
import type { ContextAssembledEvent } from "../../protocol/frames";
import { eventsOf, turnUnder } from "../../run/select";
import type { RunView } from "../../run/view";
import { get, pathOf } from "../../transport/http";
import { diffLines } from "./diff";
import type { PaneProps } from "./pane";
import styles from "./Panes.module.css";

/** What an agent was sent, piece by piece, and what it was not. */
export function Prompt({ view, seq }: PaneProps) {
  const [compares, setCompares] = useState(false);
  const [event, before] = callsAt(view, seq);
  const query = usePrompt(view, event);
  const earlier = usePrompt(view, compares ? before : undefined).data;
  if (!event) return <Empty title="No model was called up to here." />;
  return (
    <Loaded query={query} lines={8}>
      {(prompt) => {
        const isSame = prompt.digest === event.data.digest;
        return (
          <>
            <p className={styles.line}>
              <b>{event.data.agent}</b>
              <span>
                turn {event.turn}, call {prompt.call} · {prompt.tokens} tokens estimated · sent{" "}
                <code title={event.data.digest}>{event.data.digest.slice(0, 12)}</code>
              </span>
              <Chip tone={isSame ? "good" : "bad"}>{isSame ? "same as shown" : "not as shown"}</Chip>
            </p>
            {!isSame && <Problem error={prompt.note} />}
            {prompt.edited?.length ? (
              <p className={styles.quiet}>Changed before it was sent by {prompt.edited.join(", ")}.</p>
            ) : null}
            {compares && earlier && before ? <Comparison from={earlier} to={prompt} /> : <Pieces of={prompt} />}
            <LeftOut entries={prompt.left_out} />
            <p className={styles.line}>
              {before && (
                <Button variant="link" onClick={() => setCompares(!compares)}>
                  {compares
                    ? "Show the prompt"
                    : `Compare with its call before, turn ${before.turn}, call ${before.data.call}`}
                </Button>
              )}
              <CopyButton text={JSON.stringify(prompt.messages, null, 2)} label="Copy as sent" />
            </p>
          </>
        );
      }}
    </Loaded>
  );
}

type Call = ContextAssembledEvent;

/** The call that the cursor stands in or after, and the one before of the same agent. */
function callsAt(view: RunView, seq: number): [Call | undefined, Call | undefined] {
  const calls = eventsOf(view, "ContextAssembled", seq);
  const turn = turnUnder(view, seq)?.number;
  const call = calls.findLast((each) => each.turn === turn) ?? calls.at(-1);
  const before = calls.findLast((each) => each.seq < (call?.seq ?? 0) && each.data.agent === call?.data.agent);
  return [call, before];
}

function usePrompt(view: RunView, event: Call | undefined) {
  const calls = eventsOf(view, "ContextAssembled", view.seq).filter(({ turn }) => turn === event?.turn);
  return useQuery({
    // A turn under way has more calls later.
    queryKey: ["prompts", view.run, event?.turn, calls.length],
    queryFn: () => get<TurnInspection>(`/api/runs${pathOf(view.run)}/prompts/${event?.turn}`),
    enabled: event !== undefined,
    staleTime: Infinity,
    select: ({ prompts }) => prompts.find(({ seq }) => seq === event?.seq),
  });
}

/** The pieces; where hooks have changed the prompt, the messages that were sent. */
function piecesOf({ slices, messages, edited }: PromptAnswer): Segment[] {
  if (!edited?.length) return slices;
  return (messages ?? []).map(({ role, content }, index) => {
    const text = content ?? "";
    return { kind: "literal", origin: `message ${index + 1}`, role, text, tokens: Math.ceil(text.length / 4) };
  });
}

/** A colour for each kind of piece; its name is beside it. */
const KINDS: Partial<Record<Segment["kind"], string>> = {
  prompt: "var(--thread-0)",
  board: "var(--thread-1)",
  retrieval: "var(--thread-2)",
  variables: "var(--thread-3)",
  history: "var(--thread-4)",
  turn: "var(--thread-4)",
  tools: "var(--thread-5)",
  output: "var(--thread-6)",
};

/** Short pieces that an author wrote are open at once, up to so many tokens. */
const OPEN_UP_TO = 80;

function Pieces({ of: prompt }: { of: PromptAnswer }) {
  const pieces = piecesOf(prompt);
  const most = Math.max(...pieces.map(({ tokens }) => tokens), 1);
  return (
    <div className={styles.list}>
      {pieces.map(({ kind, origin, text, tokens, role, facts }, index) => {
        const isAuthored = !["history", "tools", "output"].includes(kind);
        const redacted = (facts?.redacted ?? []) as unknown[];
        return (
          <details
            key={`${kind} ${origin} ${index}`}
            open={isAuthored && tokens <= OPEN_UP_TO}
            className={styles.slice}
            style={{ "--kind": KINDS[kind] }}
          >
            <summary>
              <ChevronRight aria-hidden="true" />
              <span>
                <b>{kind}</b>
                <small>
                  {[origin, role !== "system" && role, redacted.length > 0 && `${redacted.length} removed or replaced`]
                    .filter(Boolean)
                    .join(", ")}
                </small>
              </span>
              <span className={styles.tokens} style={{ "--share": `${(tokens / most) * 100}%` }} />
              <span className={styles.amount} title={`${tokens} tokens, estimated`}>
                {tokens}
              </span>
            </summary>
            <div className={styles.inside}>
              <pre>{text}</pre>
              {redacted.map((each, place) => (
                <p key={place} className={styles.quiet}>
                  ▇ {valueText(each)}: removed or replaced before it was sent
                </p>
              ))}
            </div>
          </details>
        );
      })}
    </div>
  );
}

function LeftOut({ entries }: { entries: readonly Record<string, unknown>[] }) {
  if (entries.length === 0) return <p className={styles.quiet}>Nothing was left out of this prompt.</p>;
  return (
    <section>
      <h3>
        Left out <span>{entries.length}</span>
      </h3>
      {entries.map(({ kind, origin, reason, ...what }, index) => (
        <p key={index} className={styles.line}>
          <b>{valueText(kind)}</b>
          {[origin, ...Object.entries(what).flatMap(partOf)].map(valueText).join(", ")}: {valueText(reason)}
        </p>
      ))}
    </section>
  );
}

/** What an entry of the manifest names: keys of variables, a count, or a place in the conversation. */
function partOf([name, value]: [string, unknown]): unknown {
  if (name === "before") return `everything before event ${String(value)}`;
  return name === "count" ? `${String(value)} more` : value;
}

/** What is different from another prompt, piece by piece. */
function Comparison({ from, to }: { from: PromptAnswer; to: PromptAnswer }) {
  const [old, now] = [textsOf(from), textsOf(to)];
  return (
    <div className={styles.list}>
      {[...new Set([...now.keys(), ...old.keys()])].map((key) => {
        const lines = diffLines(old.get(key) ?? [], now.get(key) ?? []);
        const isSame = lines.every((line) => line.startsWith(" "));
        const word = isSame ? "the same" : !old.has(key) ? "new" : !now.has(key) ? "gone" : "changed";
        return (
          <details key={key} open={!isSame}>
            <summary>
              <ChevronRight aria-hidden="true" />
              <code>{key}</code>
              <small>{word}</small>
            </summary>
            <Diff text={lines.join("\n")} label={`Changes of ${key}`} />
          </details>
        );
      })}
    </div>
  );
}

/** The lines of each piece; what was said is one piece. */
function textsOf(prompt: PromptAnswer): Map<string, string[]> {
  const found = new Map<string, string[]>();
  for (const { kind, origin, role, text } of piecesOf(prompt)) {
    const isSaid = kind === "history" || kind === "turn";
    const key = isSaid ? kind : `${kind} ${origin}`;
    const lines = text.split("\n").map((line) => (isSaid ? `${role}: ${line}` : line));
    found.set(key, [...(found.get(key) ?? []), ...lines]);
  }
  return found;
}
