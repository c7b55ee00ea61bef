import { useEffect, useState } from "react";

import { placeInColumns } from "./boxes";
import type { Placed } from "./boxes";
import type { GraphModel } from "./nodes";

/** After this time the graph is drawn in plain columns. */
const DEADLINE_MS = 5_000;

/** Where the nodes of a model stand, worked out beside the page; null until that is known. */
export function useLayout(model: GraphModel): Placed | null {
  const [found, setFound] = useState<{ model: GraphModel; placed: Placed } | null>(null);
  useEffect(() => {
    const worker = new Worker(new URL("./layout.worker.ts", import.meta.url), { type: "module" });
    const fallBack = () => {
      worker.terminate();
      setFound({ model, placed: placeInColumns(model) });
    };
    const timer = setTimeout(fallBack, DEADLINE_MS);
    worker.onmessage = ({ data }: MessageEvent<Placed>) => {
      clearTimeout(timer);
      worker.terminate();
      setFound({ model, placed: data });
    };
    worker.onerror = fallBack;
    worker.postMessage(model);
    return () => {
      clearTimeout(timer);
      worker.terminate();
    };
  }, [model]);
  return found?.model === model ? found.placed : null;
}
