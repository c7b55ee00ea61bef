import type { Command, Frame } from "../protocol/frames";
import { ApiProblem } from "./http";
import { followStream } from "./stream";

export interface Viewer {
  onLive: () => void;
  /** Frames in order; none of them if the connection only shows that it is there. */
  onFrames: (frames: Frame[]) => void;
  /** Nothing more comes. Without a problem the connection was lost; else the server says why. */
  onEnd: (problem: ApiProblem | null) => void;
}

/**
 * Follow a run after an event, over a WebSocket, or over a stream where none can be opened.
 * The result ends it.
 */
export function followRun(run: string, after: number, viewer: Viewer): () => void {
  const socket = new WebSocket(`${location.origin.replace(/^http/, "ws")}/api/ws`);
  let isOpened = false;
  let stopStream: (() => void) | undefined;

  function send(command: Command): void {
    socket.send(JSON.stringify(command));
  }

  function stop(): void {
    stopStream?.();
    socket.onmessage = socket.onclose = null;
    // A browser complains of a socket that is closed before it is open.
    if (socket.readyState === WebSocket.CONNECTING) socket.onopen = () => socket.close();
    else socket.close();
  }

  socket.onopen = () => {
    isOpened = true;
    send({ v: 1, id: "follow", cmd: "follow", run, after });
  };
  socket.onmessage = ({ data }) => {
    const frames = JSON.parse(String(data)) as Frame[];
    for (const frame of frames) {
      if (frame.kind === "ping") send({ v: 1, cmd: "pong" });
      if (frame.kind !== "ack") continue;
      if (frame.ok) viewer.onLive();
      else return viewer.onEnd(new ApiProblem(statusOf(frame.problem.code), frame.problem));
    }
    viewer.onFrames(frames);
  };
  socket.onclose = () => {
    if (isOpened) viewer.onEnd(null);
    // A browser does not tell why a socket is refused: the stream works, or it says why.
    else stopStream = followStream(run, after, viewer);
  };
  return stop;
}

/** HTTP404 is 404. */
function statusOf(code: string): number {
  return Number(code.replace("HTTP", "")) || 400;
}
