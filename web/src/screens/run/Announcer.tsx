import { useEffect, useRef, useState } from "react";

import { openAt, sentText } from "../../run/select";
import type { RunState } from "../../run/store";
import type { RunView } from "../../run/view";

/** Says to screen readers what is new: finished sentences, and that a question waits. */
export function Announcer({ state: { view, isCaughtUp }, isLive }: { state: RunState; isLive: boolean }) {
  const [words, setWords] = useState("");
  /** How many characters of each text are not new; null while the run is read. */
  const said = useRef<Map<string, number> | null>(null);

  useEffect(() => {
    if (!isCaughtUp) return;
    const texts = textsOf(view);
    const news = said.current && texts.map(([key, text]) => text.slice(said.current?.get(key) ?? 0)).join(" ");
    said.current ??= new Map();
    for (const [key, text] of texts) said.current.set(key, text.length);
    if (isLive && news?.trim()) setWords(plain(news));
  }, [view, isCaughtUp, isLive]);

  return (
    <div className="unseen" role="status" aria-live="polite">
      {words}
    </div>
  );
}

/** More than this does not come between two looks. */
const NEWEST = 20;

/** What there is to say, each with a key that stays while it grows. */
function textsOf(view: RunView): [string, string][] {
  const { items, seq } = view;
  const from = items.at(items.length - NEWEST)?.seq ?? 0;
  const replies = items.between(from, seq).filter((item) => item.kind === "agent");
  const questions = openAt(view, seq).filter(({ kind }) => kind === "ui");
  return [
    ...replies.map((item): [string, string] => [`call ${item.call || item.seq}`, sentText(view, item, seq)]),
    ...[...view.drafts.values()].map(({ call, text }): [string, string] => [`call ${call}`, sentencesOf(text)]),
    ...questions.map(({ id }): [string, string] => [id, "A question waits for you."]),
  ];
}

/** The text up to the end of its last whole sentence. */
function sentencesOf(text: string): string {
  return /^[\s\S]*[.!?:](?=\s|$)/.exec(text)?.[0] ?? "";
}

function plain(text: string): string {
  return text.replaceAll(/[*_`#>|[\]]+/g, "").replaceAll(/\s+/g, " ").trim();
}
