import { placeGraph } from "./layout";
import type { GraphModel } from "./nodes";

self.onmessage = ({ data }: MessageEvent<GraphModel>) => self.postMessage(placeGraph(data));
