import { ArrowUp, Clock3, GitFork, History } from "lucide-react";
import { useState } from "react";
import type { FormEvent, KeyboardEvent } from "react";

import { useMe } from "../../app/session";
import { Button, Problem } from "../../parts";
import { isAddressed } from "../../requests/RequestCard";
import { activeAt, headAt, openAt, statusAt } from "../../run/select";
import type { RunState, RunStore } from "../../run/store";
import type { Request, RunView } from "../../run/view";
import styles from "./Composer.module.css";
import type { Cursor } from "./cursor";
import { useRestart } from "./restart";

interface ComposerProps {
  state: RunState;
  store: RunStore;
  cursor: Cursor;
  onFork?: () => void;
}

/** The one thing to do next: write, answer above, come back from the past, or start again. */
export function Composer({ state, store, cursor, onFork }: ComposerProps) {
  const { view, isCaughtUp } = state;
  const { seq, isLive, setAt } = cursor;
  // It is kept while somebody looks at the past.
  const [text, setText] = useState("");
  if (!isCaughtUp || view.seq === 0) return <div className={styles.composer} />;
  if (!isLive) {
    return (
      <div className={`${styles.composer} ${styles.bar}`}>
        <History aria-hidden="true" />
        <p>
          You are looking at event {seq} of {view.seq}.
        </p>
        {onFork && (
          <Button icon={<GitFork />} onClick={onFork}>
            Fork from here
          </Button>
        )}
        <Button variant="main" onClick={() => setAt(null)}>
          Back to the end
        </Button>
      </div>
    );
  }
  if (statusAt(view, seq).status === "ended") return <Ended view={view} />;
  // The banner above says why, and what can be done.
  if (state.connection.state === "refused") return null;
  const isQueueing = state.connection.state !== "live";
  return <Write view={view} store={store} isQueueing={isQueueing} text={text} setText={setText} />;
}

interface WriteProps {
  view: RunView;
  store: RunStore;
  isQueueing: boolean;
  text: string;
  setText: (text: string) => void;
}

function Write({ view, store, isQueueing, text, setText }: WriteProps) {
  const me = useMe();
  const open = openAt(view, view.seq);
  const questions = open.filter(({ kind }) => kind === "ui");
  const chat = open.find(({ kind }) => kind === "chat");
  const hasChat = [...view.requests.values()].some(({ kind }) => kind === "chat");
  const user = headAt(view, view.seq)?.user || me.user;
  const isMine = chat !== undefined && isAddressed(me, { ...chat, user });
  const canSend = isMine && text.trim() !== "";

  function send(event?: FormEvent) {
    event?.preventDefault();
    if (!canSend) return;
    store.say(text.trim());
    setText("");
  }

  function press(event: KeyboardEvent) {
    if (event.key !== "Enter" || event.shiftKey || event.nativeEvent.isComposing) return;
    event.preventDefault();
    send();
  }

  return (
    <div className={styles.composer}>
      {questions.length > 0 && (
        <p className={styles.open}>
          <Clock3 aria-hidden="true" />
          {questions.length === 1 ? "1 question is open above" : `${questions.length} questions are open above`}
        </p>
      )}
      {hasChat ? (
        <form className={styles.form} onSubmit={send}>
          <textarea
            rows={1}
            value={text}
            aria-label="Your message"
            placeholder={placeholderOf(view, chat, isMine)}
            onChange={(event) => setText(event.target.value)}
            onKeyDown={press}
          />
          <Button
            type="submit"
            variant="main"
            icon={<ArrowUp />}
            aria-label={isQueueing ? "Send when connected" : "Send"}
            disabled={!canSend}
          />
        </form>
      ) : (
        questions.length === 0 && <p className={styles.quiet}>{placeholderOf(view, chat, false)}</p>
      )}
    </div>
  );
}

function placeholderOf(view: RunView, chat: Request | undefined, isMine: boolean): string {
  if (isMine) return `Write to ${chat?.agent}`;
  if (chat) return "Another person is asked";
  const working = activeAt(view, view.seq).map((turn) => turn.agent);
  if (openAt(view, view.seq).length > 0) return "First comes the question above";
  if (statusAt(view, view.seq).status === "waiting") return "The run waits";
  return working.length ? `${working.join(", ")} ${working.length === 1 ? "is" : "are"} working` : "Working";
}

function Ended({ view }: { view: RunView }) {
  const { error, button } = useRestart(view);
  return (
    <div className={styles.composer}>
      {error !== null && <Problem error={error} />}
      <div className={styles.bar}>
        <p>This run has ended.</p>
        {button}
      </div>
    </div>
  );
}
