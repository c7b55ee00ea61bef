/** What is streamed and not stored: text while it is written, repeated calls, progress of tools. */
import type { Delta } from "../protocol/frames";
import type { Draft, RunView } from "./view";

/** Return the view after a piece; it waits if there is a hole before it. */
export function reduceDelta(view: RunView, delta: Delta): RunView {
  const { call, text } = delta.data;
  if (delta.kind === "progress") {
    const progress = new Map(view.progress).set(call, { share: delta.data.share, text });
    return { ...view, progress };
  }
  if (view.spanEnds.has(`model ${call}`) || view.turnEnds.has(delta.turn)) return view;
  const known = view.drafts.get(call) ?? {
    call,
    turn: delta.turn,
    agent: view.turnOf.get(delta.turn)?.agent ?? "",
    text: "",
    retry: "",
    ahead: new Map(),
  };
  const draft =
    delta.kind === "retry"
      ? { ...known, text: "", ahead: new Map(), retry: text }
      : withPiece(known, delta.data.offset, text);
  // A later call of the same turn: the end of the one before was not for this reader.
  const others = [...view.drafts].filter(([id, one]) => one.turn !== delta.turn || id === call);
  return { ...view, drafts: new Map(others).set(call, draft) };
}

function withPiece(draft: Draft, offset: number, piece: string): Draft {
  if (offset > draft.text.length) {
    return { ...draft, ahead: new Map(draft.ahead).set(offset, piece) };
  }
  // A piece that begins earlier than the text ends begins the text again from there.
  let text = draft.text.slice(0, offset) + piece;
  const ahead = new Map(draft.ahead);
  for (const [begin, waiting] of [...ahead].sort(([one], [other]) => one - other)) {
    if (begin > text.length) break;
    if (begin + waiting.length > text.length) text = text.slice(0, begin) + waiting;
    ahead.delete(begin);
  }
  return { ...draft, text, ahead, retry: "" };
}
