import { Suspense, lazy, useState } from "react";

import { Bones } from "../parts";
import { Fields, splitPayload } from "./Payload";
import styles from "./Surface.module.css";
import { useComponent } from "./useComponent";

const LazyFrame = lazy(() => import("../frame/Frame").then((module) => ({ default: module.Frame })));

export interface SurfaceProps {
  run: string;
  component: string;
  payload: unknown;
}

/** What a tool shows without asking: the component of the package, else the fields as they are. */
export function Surface({ run, component, payload }: SurfaceProps) {
  const found = useComponent(run, component);
  const [isBroken, setBroken] = useState(false);
  const { title, rest } = splitPayload(payload);
  if (found.isLoading) return <Bones lines={2} />;
  return (
    <article className={styles.surface} aria-label={title || component}>
      {found.source !== undefined && !isBroken ? (
        <Suspense fallback={<Bones lines={2} />}>
          <LazyFrame
            source={found.source}
            payload={payload}
            title={title || component}
            onResponse={ignore}
            onCancel={ignore}
            onFail={() => setBroken(true)}
          />
        </Suspense>
      ) : (
        <>
          {title && <h3>{title}</h3>}
          <Fields values={rest} />
        </>
      )}
    </article>
  );
}

// Nobody waits for an answer to what is only shown.
function ignore(): void {}
