import { Suspense, lazy, useState } from "react";
import type { ReactNode } from "react";

import { can, useMe } from "../app/session";
import { LazySchemaForm } from "../forms";
import { Bones, Button, Chip, Code, Time } from "../parts";
import type { MeAnswer, RequestAnswer } from "../protocol/api";
import { installIfApproved } from "./install";
import { Fields, isListOfTexts, splitPayload } from "./Payload";
import styles from "./RequestCard.module.css";
import { useComponent } from "./useComponent";

const LazyFrame = lazy(() => import("../frame/Frame").then((module) => ({ default: module.Frame })));

/** A question, as a list of open requests has it. Its schema is missing until it is known. */
export type Question = Pick<
  RequestAnswer,
  "id" | "kind" | "agent" | "tool" | "payload" | "component" | "addressee" | "expires_at"
> & { user: string; sets?: readonly string[]; response_schema?: RequestAnswer["response_schema"] };

/** How a question was closed. A value that is not for the reader is null. */
export interface Closed {
  how: "answered" | "expired" | "cancelled";
  ts: number;
  value: unknown;
  user: string;
}

export interface RequestCardProps {
  run: string;
  request: Question;
  closed?: Closed;
  send: (value: unknown) => Promise<unknown>;
  /** Closes the question without an answer, where this is possible. */
  cancel?: () => Promise<unknown>;
  onAnswered?: () => void;
}

/** A question to a person: who is asked, the answer form or component, and later the answer. */
export function RequestCard({ run, request, closed, send, cancel, onAnswered }: RequestCardProps) {
  const me = useMe();
  const isMine = isAddressed(me, request);
  const [isForOther, answerForOther] = useState(false);
  const [broken, setBroken] = useState("");
  const { title, rest } = splitPayload(request.payload);
  const isAnswering = !closed && (isMine || isForOther);
  const component = useComponent(run, isAnswering ? request.component : "");
  const source = broken ? undefined : component.source;
  return (
    <article className={`${styles.card} ${closed ? styles.closed : ""}`} aria-label={title || "Question"}>
      <header className={styles.header}>
        {/* A component says itself what it asks. */}
        <h3 className={source === undefined ? undefined : "unseen"}>{title || `${request.agent} asks`}</h3>
        <State request={request} closed={closed} isMine={isMine} />
      </header>
      {isAnswering ? (
        <AnswerArea
          source={source}
          isLoading={component.isLoading}
          broken={broken}
          onBroken={setBroken}
          request={request}
          rest={rest}
          send={async (value) => {
            await installIfApproved(me, run, value);
            return send(value);
          }}
          cancel={cancel}
          onAnswered={onAnswered}
        />
      ) : (
        <div className={styles.body}>
          <Fields values={rest} />
          {closed?.how === "answered" && <Given value={closed.value} />}
          {!closed && !isMine && can(me, "developer") && (
            <Button variant="bare" onClick={() => answerForOther(true)}>
              Answer in their place
            </Button>
          )}
        </div>
      )}
      {request.sets && request.tool && (
        <footer className={styles.footer}>
          asked by <Code>{request.tool}</Code>
          {request.sets.length > 0 && " · sets "}
          {request.sets.map((name, index) => (
            <span key={name}>
              {index > 0 && ", "}
              <Code>{name}</Code>
            </span>
          ))}
        </footer>
      )}
    </article>
  );
}

/** Whether a question is for this person: one of their own run, or one for a role of theirs. */
export function isAddressed(me: MeAnswer, request: Pick<Question, "addressee" | "user">): boolean {
  const { addressee } = request;
  if (!addressee) return request.user === me.user;
  const [kind, name = ""] = split(addressee);
  if (kind === "user") return name === me.user;
  return (kind === "group" ? me.groups : me.roles).includes(name);
}

/** "role:manager" is "manager". */
export function addresseeName(request: Pick<Question, "addressee" | "user">): string {
  return request.addressee ? split(request.addressee)[1] : request.user;
}

function split(addressee: string): [string, string] {
  const colon = addressee.indexOf(":");
  return [addressee.slice(0, colon), addressee.slice(colon + 1)];
}

interface StateProps {
  request: Question;
  closed?: Closed;
  isMine: boolean;
}

function State({ request, closed, isMine }: StateProps) {
  if (!closed) {
    const who = isMine ? "you" : addresseeName(request);
    return (
      <span className={styles.state}>
        <Chip tone="wait">waiting for {who}</Chip>
        {request.expires_at !== null && (
          <span className={styles.until}>
            until <Time at={request.expires_at} />
          </span>
        )}
      </span>
    );
  }
  if (closed.how === "answered") {
    return (
      <Chip tone="good">
        answered by {closed.user || "somebody"} · <Time at={closed.ts} />
      </Chip>
    );
  }
  return (
    <Chip tone="plain">
      {closed.how} · <Time at={closed.ts} />
    </Chip>
  );
}

function Given({ value }: { value: unknown }) {
  if (value === null || value === undefined) return null;
  return <Fields values={value} name="answer" />;
}

interface AnswerAreaProps extends Omit<RequestCardProps, "run" | "closed"> {
  rest: Record<string, unknown>;
  source: string | undefined;
  isLoading: boolean;
  /** Why the component is not used; empty if it is. */
  broken: string;
  onBroken: (reason: string) => void;
}

/** The component of the package where it has one and it works, else the form. */
function AnswerArea({ request, rest, send, cancel, onAnswered, ...own }: AnswerAreaProps) {
  const { source, isLoading, broken, onBroken } = own;
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);

  async function perform(act: () => Promise<unknown>) {
    setBusy(true);
    setError(null);
    try {
      await act();
      onAnswered?.();
    } catch (problem) {
      setError(problem);
    } finally {
      setBusy(false);
    }
  }

  if (isLoading) return <Bones lines={2} />;
  if (source !== undefined) {
    return (
      <div className={styles.body}>
        <Suspense fallback={<Bones lines={2} />}>
          <LazyFrame
            source={source}
            payload={request.payload}
            title={`Question of ${request.agent}`}
            onResponse={(value) => {
              void perform(async () => {
                try {
                  await send(value);
                } catch (problem) {
                  // What the component sent is no valid answer, or came too late: the form says so.
                  onBroken("its answer was not accepted");
                  throw problem;
                }
              });
            }}
            onCancel={() => cancel && void perform(cancel)}
            onFail={onBroken}
          />
        </Suspense>
      </div>
    );
  }
  return (
    <div className={styles.body}>
      {broken && (
        <p className={styles.note} role="status">
          This question has a card of its own, but {broken}. You can answer in this form.
        </p>
      )}
      <AnswerForm
        request={request}
        rest={rest}
        busy={busy}
        error={error}
        onSubmit={(value) => void perform(() => send(value))}
        secondary={
          cancel && (
            <Button variant="bare" disabled={busy} onClick={() => void perform(cancel)}>
              Cancel
            </Button>
          )
        }
      />
    </div>
  );
}

const MESSAGE_SCHEMA = {
  type: "object",
  properties: { text: { type: "string", title: "Your message" } },
  required: ["text"],
};

interface AnswerFormProps {
  request: Question;
  rest: Record<string, unknown>;
  busy: boolean;
  error: unknown;
  onSubmit: (value: unknown) => void;
  secondary: ReactNode;
}

function AnswerForm({ request, rest, onSubmit, ...form }: AnswerFormProps) {
  const [picked, setPicked] = useState<string | null>(null);
  const schema = request.kind === "chat" ? MESSAGE_SCHEMA : request.response_schema;
  if (schema === undefined) return <Bones lines={3} />;
  const field = firstTextField(schema ?? {});
  const offered = Object.entries(rest).find(([, value]) => isListOfTexts(value));
  const isInForm = offered !== undefined && isChoice(schema ?? {}, offered[1]);
  const suggestions = field && offered && !isInForm ? (offered[1] as string[]) : [];
  const isDrawn = isInForm || suggestions.length > 0;
  const shown = Object.fromEntries(
    Object.entries(rest).filter(([name]) => !isDrawn || name !== offered?.[0]),
  );
  return (
    <>
      <Fields values={shown} />
      {suggestions.length > 0 && (
        <div className={styles.suggestions} role="group" aria-label="Likely answers">
          {suggestions.map((text) => (
            <button key={text} type="button" onClick={() => setPicked(text)}>
              {text}
            </button>
          ))}
        </div>
      )}
      <LazySchemaForm
        key={picked}
        schema={schema ?? {}}
        value={picked === null || !field ? undefined : { [field]: picked }}
        submitLabel="Send"
        onSubmit={(value: unknown) =>
          onSubmit(request.kind === "chat" ? (value as { text: string }).text : value)
        }
        {...form}
      />
    </>
  );
}

/** Whether a field of the form offers just these texts. */
function isChoice(schema: Record<string, unknown>, texts: unknown): boolean {
  const fields = Object.values((schema.properties ?? {}) as Record<string, Record<string, unknown>>);
  return fields.some((field) => JSON.stringify(field.enum) === JSON.stringify(texts));
}

/** The field that a suggested answer goes into: the first that takes any text. */
function firstTextField(schema: Record<string, unknown>): string | undefined {
  const properties = (schema.properties ?? {}) as Record<string, Record<string, unknown>>;
  return Object.keys(properties).find(
    (name) => properties[name]?.type === "string" && !("enum" in properties[name]),
  );
}
