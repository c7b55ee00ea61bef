import { useQuery } from "@tanstack/react-query";
import { MessageSquare, Pencil } from "lucide-react";
import { useState } from "react";

import { setQuery } from "../../app/url";
import { readSpec } from "../../graph/spec";
import { Entries, Named, nameOf, Notes, Structure } from "../../packages/Structure";
import type { Note } from "../../packages/Structure";
import { ActionDialog, Button, Code, Field, Section, Segmented, Value } from "../../parts";
import type { PlanAnswer, PlanDiffAnswer } from "../../protocol/api";
import { readableName } from "../../requests/Payload";
import type { Request } from "../../run/view";
import { Sequence } from "../../sequence/Sequence";
import { get, pathOf, post, put } from "../../transport/http";
import styles from "./design.module.css";
import { Lines, openText } from "./Offer";
import { compose, joinComments, markKeys, marksOf } from "./plan";
import type { Entry } from "./plan";
import { stepName } from "./Steps";
import { TextDraft } from "./TextDraft";

interface PlanProps {
  run: string;
  answer: PlanAnswer;
  /** The package of the design: its agents say what happens after the approval. */
  spec: Record<string, unknown>;
  /** The question that waits for the decision on the last plan. */
  decision: Request | null;
}

/** A plan for reading: every element can be commented on, and the last round decided on. */
export function Plan({ run, answer, spec, decision }: PlanProps) {
  const { round, rounds, hash, plan, open, text: written } = answer;
  const [comments, setComments] = useState<ReadonlyMap<string, string>>(new Map());
  const [asking, setAsking] = useState<"approve" | "change" | null>(null);
  /** The line of the plan at which it is being edited. */
  const [editing, setEditing] = useState<number | null>(null);
  const canDecide = decision !== null && round === rounds;
  const diff = useQuery({
    queryKey: ["plan", run, "diff", round],
    queryFn: () => get<PlanDiffAnswer>(`/api/plans${pathOf(run)}/diff?to=${round}`),
    enabled: round > 1,
    staleTime: Infinity,
  });
  const marks = marksOf(diff.data?.changes ?? []);
  const { strategy, modules, diagram, others } = compose(plan);

  function setComment(key: string, text: string | null) {
    const left = [...comments].filter(([each]) => each !== key);
    setComments(new Map(text === null ? left : [...left, [key, text]]));
  }

  function note(trail: readonly string[], entry: Entry = {}): Note {
    const name = trail.at(-1) ?? "";
    const key = trail.join("\n");
    const text = comments.get(key);
    // A part with a name of its own is marked as the part.
    const called = entry === strategy ? "WorkflowStrategy" : name;
    const mark = markKeys(trail[0] ?? "", called, entry).map((each) => marks.get(each)).find(Boolean);
    if (!canDecide) return { mark };
    return {
      mark,
      actions: (
        <Button
          variant="bare"
          icon={<MessageSquare />}
          aria-label={`Comment on ${name}`}
          aria-expanded={text !== undefined}
          onClick={() => setComment(key, text === undefined ? "" : null)}
        />
      ),
      below: text !== undefined && (
        <textarea
          autoFocus
          aria-label={`Your comment on ${name}`}
          placeholder="What should be different?"
          value={text}
          onChange={(event) => setComment(key, event.target.value)}
        />
      ),
    };
  }

  function editOf(name: string) {
    const line = written.split("\n").findIndex((each) => each.startsWith(`${name}:`)) + 1;
    return (
      canDecide &&
      line > 0 && (
        <Button
          variant="bare"
          icon={<Pencil />}
          aria-label={`Edit ${readableName(name)}`}
          onClick={() => setEditing(line)}
        />
      )
    );
  }

  function part(name: string, value: Entry) {
    const { mark, actions, below } = note([name], value);
    const hasName = nameOf(value) !== undefined;
    return (
      <Section
        key={name}
        title={readableName(name) + (mark ? `, ${mark}` : "")}
        actions={
          <>
            {!hasName && actions}
            {editOf(name)}
          </>
        }
      >
        {hasName ? (
          <Named entry={value} trail={[name]} />
        ) : (
          <div className={styles.part}>
            {below}
            <Structure value={value} trail={[name]} />
          </div>
        )}
      </Section>
    );
  }

  const said = [...comments]
    .filter(([, text]) => text.trim())
    .map(([key, text]) => ({ trail: key.split("\n"), text }));
  if (editing !== null && canDecide) {
    return (
      <div className={styles.plan}>
        <TextDraft
          path="plan.yaml"
          first={written}
          line={editing}
          action="Save as the next round"
          send={(text) => put(`/api/plans${pathOf(run)}`, { text, hash })}
        >
          <Button onClick={() => setEditing(null)}>Cancel</Button>
        </TextDraft>
      </div>
    );
  }
  return (
    <>
      <Notes value={note}>
        <div className={styles.plan}>
          {rounds > 1 && (
            <div>
              <Segmented
                label="Round"
                value={String(round)}
                options={Array.from({ length: rounds }, (_, index) => ({
                  value: String(index + 1),
                  label: `Round ${index + 1}`,
                }))}
                onChange={(value) => setQuery({ round: value === String(rounds) ? null : value })}
              />
            </div>
          )}
          {round > 1 && <Changes answer={answer} diff={diff.data} />}
          <Lines title="This plan is a skeleton. Open:" lines={open.map(openText)} />
          {part("WorkflowStrategy", strategy)}
          <Section title="Modules" actions={editOf("ModuleAgents")}>
            {modules.map(({ entry, agents }, index) => (
              <Named key={index} entry={entry} trail={["WorkflowStrategy"]}>
                <Entries label="Agents" list={agents} trail={["ModuleAgents"]} />
              </Named>
            ))}
          </Section>
          {diagram && (
            <Section title="Diagram">
              <Sequence text={diagram} />
            </Section>
          )}
          {others.map(([name, value]) => part(name, value))}
          <details>
            <summary>The plan as data</summary>
            <pre tabIndex={0}>{JSON.stringify(plan, null, 2)}</pre>
          </details>
        </div>
      </Notes>
      <footer className={styles.decision}>
        <span>
          Plan <Code>{hash.slice(0, 12)}</Code>{" "}
          {canDecide ? "waits for your decision" : round < rounds ? "is an earlier round" : answer.acceptance.replaceAll("_", " ")}
        </span>
        {canDecide && (
          <>
            <Button onClick={() => setEditing(1)}>Edit</Button>
            <Button onClick={() => setAsking("change")}>
              Request changes{said.length > 0 && ` (${said.length})`}
            </Button>
            <Button variant="main" onClick={() => setAsking("approve")}>
              Approve
            </Button>
          </>
        )}
      </footer>
      {asking === "approve" && (
        <ActionDialog
          title="Approve the plan"
          action="Approve"
          perform={() => post(`/api/plans${pathOf(run)}/approve`, { hash, skeleton: open.length > 0 })}
          onClose={() => setAsking(null)}
        >
          <Lines title="This plan is a skeleton. Open:" lines={open.map(openText)} />
          <WhatFollows spec={spec} asker={decision?.agent ?? ""} hash={hash} />
        </ActionDialog>
      )}
      {asking === "change" && (
        <ActionDialog
          title="Request changes"
          action="Send"
          perform={async (fields) => {
            const body = joinComments(said, String(fields.get("text")));
            await post(`/api/plans${pathOf(run)}/comment`, body);
            setComments(new Map());
          }}
          onClose={() => setAsking(null)}
        >
          {said.map(({ trail, text }) => (
            <p key={trail.join()}>
              <strong>{trail.at(-1)}:</strong> {text}
            </p>
          ))}
          <Field
            label={said.length ? "Anything else" : "What should be different?"}
            hint="Without a language model, a comment becomes an open place of the plan. Edit the plan instead."
          >
            {(id, described) => (
              <textarea {...described} id={id} name="text" rows={3} required={said.length === 0} />
            )}
          </Field>
        </ActionDialog>
      )}
    </>
  );
}

interface ChangesProps {
  answer: PlanAnswer;
  diff: PlanDiffAnswer | undefined;
}

/** Why there was another round, and what is different in it. */
function Changes({ answer: { round, comments }, diff }: ChangesProps) {
  const asked = comments.filter((comment) => comment.round === round - 1);
  return (
    <Section title={`What round ${round} changes`}>
      <div className={styles.part}>
        {asked.map((comment, index) => (
          <blockquote key={index} className={styles.said}>
            {String(comment.text)}
          </blockquote>
        ))}
        {diff?.changes.length === 0 && <p>Nothing is different.</p>}
        {diff && diff.changes.length > 0 && (
          <ul className={styles.changes} aria-label="Changes">
            {diff.changes.map(({ path, before, after }) => (
              <li key={path}>
                <Code>{path}</Code>
                {before !== null && (
                  <del>
                    <Value value={before} />
                  </del>
                )}
                {after !== null && (
                  <ins>
                    <Value value={after} />
                  </ins>
                )}
              </li>
            ))}
          </ul>
        )}
      </div>
    </Section>
  );
}

interface WhatFollowsProps {
  spec: Record<string, unknown>;
  /** The agent that asks for the decision: those after it work next. */
  asker: string;
  hash: string;
}

function WhatFollows({ spec, asker, hash }: WhatFollowsProps) {
  const names = (readSpec(spec).agents ?? []).map((agent) => agent.agent_name);
  const next = names.slice(names.indexOf(asker) + 1).map(stepName);
  return (
    <>
      <p>
        {next.length} agents write the package now: {next.join(", ").toLowerCase()}. It is checked and
        simulated, and no code of it runs before that. Nothing is installed until you say so.
      </p>
      <p>
        You approve the plan <Code>{hash.slice(0, 12)}</Code> as it is shown, and no other.
      </p>
    </>
  );
}
