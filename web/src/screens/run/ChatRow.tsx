import { Check, ChevronRight, Clock3, CornerDownRight, GitBranch, RotateCcw, Split, Undo2, X } from "lucide-react";
import type { ReactNode } from "react";

import { go, Link, setQuery } from "../../app/url";
import { Markdown } from "../../markdown";
import { agentColor, Button, Chip, Code, Duration, Problem, StatusChip, Time, Value } from "../../parts";
import { Fields } from "../../requests/Payload";
import { RunQuestion } from "../../requests/RunQuestion";
import { Surface } from "../../requests/Surface";
import { closedAt, resultAt, sentText, threadOf, turnAt, turnEndAt, turnStateAt } from "../../run/select";
import type { AgentItem, HandoffItem, RunView, TroubleItem } from "../../run/view";
import { pathOf } from "../../transport/http";
import type { Row } from "./Chat";
import styles from "./Chat.module.css";
import { handoffOf, valuesIn } from "./pack";
import type { PaneProps } from "./pane";
import { Verdicts } from "./Verdicts";

export interface ChatRowProps extends PaneProps {
  row: Row;
  /** The thread comes down from the row above. */
  isJoined: boolean;
  isOpen: boolean;
  onToggle: () => void;
  onFork?: () => void;
}

type Of<K extends Row["kind"]> = Omit<ChatRowProps, "row"> & { row: Extract<Row, { kind: K }> };

export function ChatRow(props: ChatRowProps) {
  const { row, view } = props;
  switch (row.kind) {
    case "start":
      return (
        <Line {...props}>
          <p className={styles.quiet}>{row.workflow} was started with</p>
          <Fields values={row.input} />
        </Line>
      );
    case "user":
      return (
        <Bubble text={row.text ?? "This message is not shown to you."}>
          {row.user} · <Time at={row.ts} />
        </Bubble>
      );
    case "queued":
      return <Queued {...props} row={row} />;
    case "agent":
      return <AgentSays {...props} row={row} />;
    case "draft":
      return <DraftSays {...props} row={row} />;
    case "activity":
      return (
        <Line {...props} mark="bead" isBusy>
          <Speaker name={row.of.agent} view={view} />
          <p className={styles.quiet}>is working</p>
        </Line>
      );
    case "note":
      return (
        <Line {...props}>
          <p className={styles.note}>{row.text}</p>
        </Line>
      );
    case "tool":
      return <ToolLine {...props} row={row} />;
    case "handoff":
      return <Handoff {...props} row={row} />;
    case "request":
      return <Question {...props} row={row} />;
    case "surface":
      return (
        <Line {...props} mark="diamond">
          {row.mode === "artifact" ? (
            <Stub seq={row.seq} title={row.tool} text="is shown beside the conversation" />
          ) : (
            <Surface run={view.run} component={row.component} payload={row.payload} />
          )}
        </Line>
      );
    case "step":
      return <Step {...props} row={row} />;
    case "branch":
      return (
        <Words {...props} icon={<GitBranch />}>
          <Code>{row.source}</Code> {BRANCHES[row.why]}{" "}
          {!row.target.startsWith("/") && <Code>{row.target}</Code>}
        </Words>
      );
    case "forked":
      return (
        <Words {...props} icon={<Split />}>
          <Code>{row.name}</Code> begins side by side: {row.members.join(", ")}
        </Words>
      );
    case "joined":
      return (
        <Words {...props} icon={<CornerDownRight />}>
          <Code>{row.name}</Code> has joined
          {row.results && `: ${Object.entries(row.results).map((path) => path.join(" ")).join(", ")}`}
          {row.text && <Markdown text={row.text} />}
        </Words>
      );
    case "artifact":
      return (
        <Details
          {...props}
          summary={
            <>
              {row.by.replace(/^user:/, "") || "Somebody"} {row.arrived ? "had published" : "published"}{" "}
              <Code>{row.type}</Code> {row.wakes.length > 0 && `for ${row.wakes.join(", ")}`}
            </>
          }
        >
          <Fields values={row.payload} />
        </Details>
      );
    case "trouble":
      return (
        <Line {...props} mark="failed">
          <div className={styles.trouble}>
            <strong>
              {row.agent || "The run"} {TROUBLES[row.what]}
            </strong>
            <p>
              {row.error}
              {row.attempts > 1 && ` (${row.attempts} attempts)`}
            </p>
          </div>
        </Line>
      );
    case "stop":
      return (
        <Words {...props} mark="square">
          {row.user || "Somebody"} asked to stop {row.mode === "now" ? "now" : "after the turn"}
        </Words>
      );
    case "copied":
      return (
        <div className={styles.copied}>
          Copied up to here from run{" "}
          <Link to={`/runs${pathOf(row.parent)}?at=${row.from}`}>…{row.parent.slice(-6)}</Link>, event {row.from}
        </div>
      );
    case "end":
      return <End {...props} row={row} />;
  }
}

const BRANCHES: Record<Extract<Row, { kind: "branch" }>["why"], string> = {
  case: "goes to",
  otherwise: "goes otherwise to",
  again: "repeats from",
  done: "is done repeating",
  limit: "has repeated as often as it may",
  low_confidence: "is not sure enough: it goes to",
  failure: "failed: it goes to",
  recovery: "recovers with",
  rejected: "was rejected: it goes to",
  timed_out: "got no answer: it goes to",
};

const TROUBLES: Record<TroubleItem["what"], string> = {
  model: "got no answer from its model",
  reply: "gave a reply that is not valid",
  turn: "failed in its turn",
};

// -- the shapes of rows

interface LineProps {
  isJoined: boolean;
  mark?: "bead" | "diamond" | "ring" | "square" | "failed";
  isBusy?: boolean;
  children: ReactNode;
}

/** A row beside the thread of its agent. */
function Line({ isJoined, mark, isBusy = false, children }: LineProps) {
  const classes = [styles.row, isJoined && styles.joined, mark && styles[mark], isBusy && styles.isBusy];
  return <div className={classes.filter(Boolean).join(" ")}>{children}</div>;
}

function Words({ icon, children, ...line }: LineProps & { icon?: ReactNode }) {
  return (
    <Line {...line}>
      <p className={styles.line}>
        {icon} {children}
      </p>
    </Line>
  );
}

interface DetailsProps extends LineProps, Pick<ChatRowProps, "isOpen" | "onToggle"> {
  summary: ReactNode;
}

/** One line that unfolds. It stays open while the list is scrolled. */
function Details({ summary, isOpen, onToggle, children, mark = "diamond", ...line }: DetailsProps) {
  return (
    <Line {...line} mark={mark}>
      <details open={isOpen} className={styles.details}>
        <summary
          className={styles.line}
          onClick={(event) => {
            event.preventDefault();
            onToggle();
          }}
        >
          {summary}
          <ChevronRight aria-hidden="true" />
        </summary>
        {isOpen && <div className={styles.inside}>{children}</div>}
      </details>
    </Line>
  );
}

function Bubble({ text, children }: { text: string; children: ReactNode }) {
  return (
    <div className={styles.user}>
      <p className={styles.bubble}>{text}</p>
      <div className={styles.quiet}>{children}</div>
    </div>
  );
}

function Speaker({ name, view, note, at }: { name: string; view: RunView; note?: ReactNode; at?: number }) {
  return (
    <p className={styles.speaker}>
      <strong style={{ color: agentColor(threadOf(view, name)) }}>{name}</strong>
      <span className={styles.quiet}>{note}</span>
      {at !== undefined && <Time at={at} />}
    </p>
  );
}

/** What has its place in the dock. */
function Stub({ seq, title, text }: { seq: number; title: string; text: string }) {
  return (
    <p className={styles.stub}>
      <Code>{title}</Code> {text}
      <Button onClick={() => setQuery({ panel: "artifact", show: String(seq) })}>Open</Button>
    </p>
  );
}

// -- what is said

function Queued({ row: { message }, store }: Of<"queued">) {
  const { id, text, problem } = message;
  return (
    <Bubble text={text}>
      {problem === null ? (
        <>
          <Clock3 aria-hidden="true" /> not sent yet
        </>
      ) : (
        <Problem
          error={problem}
          onRetry={() => store.sayAgain(id)}
          actions={<Button onClick={() => store.dropMessage(id)}>Delete</Button>}
        />
      )}
    </Bubble>
  );
}

function AgentSays({ row, view, seq, ...props }: Of<"agent">) {
  const text = sentText(view, row, seq);
  const data = objectIn(text);
  const isAnswer = row.answerer === "model" || row.answerer === null;
  const notes = notesOf(row, text);
  return (
    <Line {...props} mark="bead">
      <Speaker
        name={turnAt(view, row.turn, seq)?.agent ?? row.agent}
        view={view}
        at={row.ts}
        note={
          <>
            {[row.turn && `turn ${row.turn}`, isAnswer && row.model].filter(Boolean).join(" · ")}{" "}
            {!isAnswer && <Chip tone="plain">{row.answerer}</Chip>}
          </>
        }
      />
      <div className={styles.said}>{data ? <Fields values={data} /> : <Markdown text={text} />}</div>
      {notes && <p className={styles.quiet}>{notes}</p>}
    </Line>
  );
}

/** What is to be known of a reply that is not as it should be. */
function notesOf({ insteadOf, finish, retries }: AgentItem, text: string): string {
  const notes = [
    text === "" && "Not said: its tool has not accepted it.",
    insteadOf && `In place of ${insteadOf}.`,
    finish === "length" && "The reply was cut off: it is as long as the model may write.",
    retries.length > 0 && `Asked ${retries.length + 1} times: ${retries.at(-1)}.`,
  ];
  return notes.filter(Boolean).join(" ");
}

/** The object that a text is the JSON of. */
function objectIn(text: string): object | null {
  try {
    return text.startsWith("{") ? JSON.parse(text) : null;
  } catch {
    return null;
  }
}

function DraftSays({ row: { draft }, view, ...props }: Of<"draft">) {
  const isData = /^\s*[[{]/.test(draft.text);
  return (
    <Line {...props} mark="bead" isBusy>
      <Speaker name={draft.agent} view={view} note={draft.retry ? `is asked again: ${draft.retry}` : "writes"} />
      <div className={styles.said}>
        {isData ? <pre className={styles.quiet}>{draft.text}</pre> : <Markdown text={draft.text} />}
      </div>
    </Line>
  );
}

// -- what is done

function ToolLine({ row, ...props }: Of<"tool">) {
  const { view, seq, isLive } = props;
  const call = view.calls.get(row.call);
  if (!call) return null;
  const result = resultAt(view, row.call, seq);
  const progress = isLive ? view.progress.get(call.seq) : undefined;
  return (
    <Details
      {...props}
      mark={result?.error ? "failed" : "diamond"}
      isBusy={!result}
      summary={
        <>
          {result && (result.error === null ? <Check aria-label="done" /> : <X aria-label="failed" />)}
          <code>{call.tool}</code>
          {result ? <Duration ms={result.ts - call.ts} /> : progress?.text || "running"}
          {progress && progress.share > 0 && <progress value={progress.share} aria-label="Progress" />}
          {call.auto && "automatic"}
          {result?.error && <span className={styles.error}>{result.error}</span>}
        </>
      }
    >
      <h3>Arguments</h3>
      <Data value={call.arguments} />
      {result && <h3>{result.error === null ? "Result" : "Error"}</h3>}
      {result && <Data value={result.error ?? result.value} />}
    </Details>
  );
}

function Data({ value }: { value: unknown }) {
  if (typeof value !== "object" || value === null) return <Value value={value} max={400} />;
  return <pre tabIndex={0}>{JSON.stringify(value, null, 2).slice(0, 20_000)}</pre>;
}

const REASONS: Record<HandoffItem["why"], string> = {
  rule: "",
  start: "",
  fallback: "because no other rule applied",
  pattern: "as its pattern says",
  default: "because no rule applied",
  reply_limit: "because it has replied as often as it may",
  joined: "when all were done",
  chosen: "because it chose to",
};

function Handoff({ row, isOpen, onToggle, view, pack }: Of<"handoff">) {
  const condition = handoffOf(pack, row.rule)?.condition;
  const isEnd = row.target === "terminate";
  const to = isEnd ? "var(--line)" : agentColor(threadOf(view, row.target));
  const asked = Object.keys(row.evaluated).length;
  return (
    <div className={styles.handoff} style={{ "--to": to }}>
      {/* The thread of one agent passes under that of the next. */}
      <svg viewBox="0 0 24 60" preserveAspectRatio="none" aria-hidden="true">
        <path d="M14 0C14 30 3 30 3 60" stroke="var(--thread)" />
        <path d="M3 0C3 30 14 30 14 60" stroke="var(--to)" />
      </svg>
      <p>
        <strong style={{ color: "var(--thread)" }}>{row.source}</strong>{" "}
        {isEnd ? "ended the conversation" : "handed off to "}
        {!isEnd && <strong style={{ color: to }}>{row.target}</strong>}
      </p>
      <p className={styles.line}>
        {condition ? (
          <>
            because <Code>{condition}</Code>
            {valuesIn(condition, pack, view, row.seq).map(({ name, value }) => (
              <span key={name}>
                {name} was <b><Value value={value} max={40} /></b>
              </span>
            ))}
          </>
        ) : (
          REASONS[row.why]
        )}
        {asked > 0 && pack && (
          <Button variant="link" aria-expanded={isOpen} onClick={onToggle}>
            {row.rule === null ? `${asked} rules asked` : `rule ${row.rule + 1}`}
          </Button>
        )}
      </p>
      {isOpen && pack && <Verdicts pack={pack} agent={row.source} handoff={row} />}
    </div>
  );
}

function Step({ row, view, seq, ...props }: Of<"step">) {
  const turn = turnAt(view, row.turn, seq);
  const end = turnEndAt(view, row.turn, seq);
  const state = turnStateAt(view, row.turn, seq);
  return (
    <Words
      {...props}
      mark={state === "failed" ? "failed" : "diamond"}
      isBusy={state === "working"}
      icon={row.undoes > 0 && <Undo2 />}
    >
      <strong style={{ color: turn && agentColor(threadOf(view, turn.agent)) }}>{row.step}</strong>
      {row.undoes > 0 && "is undone"} {turn?.agent !== row.step && turn?.agent}{" "}
      {row.attempt > 1 && `attempt ${row.attempt}`} {end && <Duration ms={end.ts - row.ts} />}
      {state === "undone" && <Chip tone="plain">undone</Chip>}
      {state === "failed" && <Chip tone="bad">failed</Chip>}
    </Words>
  );
}

function Question({ row, view, seq, isLive, store, ...props }: Of<"request">) {
  const request = view.requests.get(row.id);
  const closed = closedAt(view, row.id, seq);
  if (!request) return null;
  const text = closed ? `was ${closed.how}` : "asks beside the conversation";
  return (
    <Line {...props} mark={closed ? "diamond" : "ring"}>
      {request.mode === "artifact" ? (
        <Stub seq={row.seq} title={request.tool ?? request.agent} text={text} />
      ) : (
        <RunQuestion id={row.id} store={store} view={view} seq={seq} isLive={isLive} />
      )}
    </Line>
  );
}

function End({ row, view, store, isLive, onFork, ...props }: Of<"end">) {
  const isSaid = view.items.until(row.seq).some((item) => item.kind === "trouble" && row.reason.includes(item.error));
  return (
    <Line {...props} mark="square">
      <p className={styles.line}>
        <StatusChip row={{ status: "ended", outcome: row.outcome }} />
        <span className={styles.reason}>{isSaid ? "Everything up to here is kept." : row.reason}</span>
        <Time at={row.ts} />
      </p>
      {row.outcome === "failed" && isLive && (
        <p className={styles.line}>
          <Button
            icon={<RotateCcw />}
            onClick={() => void store.retry().then((run) => go(`/runs${pathOf(run)}`))}
          >
            Retry now
          </Button>
          {onFork && <Button onClick={onFork}>Use another model</Button>}
        </p>
      )}
    </Line>
  );
}
