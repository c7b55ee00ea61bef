import type { Frame } from "../protocol/frames";
import { pathOf, problemOf } from "./http";
import type { Viewer } from "./socket";

/** Follow a run over a server-sent stream, which ends with the run. */
export function followStream(run: string, after: number, viewer: Viewer): () => void {
  const stopping = new AbortController();
  read(`/api${pathOf("runs", run, "stream")}?after=${after}`, viewer, stopping.signal).catch(() => {
    if (!stopping.signal.aborted) viewer.onEnd(null);
  });
  return () => stopping.abort();
}

async function read(path: string, viewer: Viewer, signal: AbortSignal): Promise<void> {
  const headers = { Accept: "text/event-stream" };
  const answer = await fetch(path, { headers, credentials: "same-origin", signal });
  if (!answer.ok || !answer.body) return viewer.onEnd(problemOf(answer.status, await answer.text()));
  viewer.onLive();
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return viewer.onEnd(null);
    const blocks = (rest + value).split("\n\n");
    rest = blocks.pop() ?? "";
    viewer.onFrames(blocks.flatMap(framesIn));
  }
}

/** The frame in a block of a stream; none in a ping. */
function framesIn(block: string): Frame[] {
  const data = block.split("\n").find((line) => line.startsWith("data: "));
  return data === undefined ? [] : [JSON.parse(data.slice("data: ".length)) as Frame];
}
