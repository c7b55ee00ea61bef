import { lazy, Suspense, useState } from "react";

import { Bones, Field } from "../parts";
import styles from "./Files.module.css";
import { payloadSchemaOf, sampleOf } from "./sample";

const LazyFrame = lazy(() => import("../frame/Frame").then((module) => ({ default: module.Frame })));

export interface PreviewProps {
  /** The name of the component. */
  name: string;
  source: string;
  /** The tools of the package: they say what the component is given. */
  tools: unknown;
}

/** A component as people see it, in the sandbox, with a payload that is made up. */
export function Preview({ name, source, tools }: PreviewProps) {
  const [text, setText] = useState(() =>
    JSON.stringify(sampleOf(payloadSchemaOf(tools, name)), null, 2),
  );
  const [news, setNews] = useState("");
  const payload = parse(text);
  return (
    <div className={styles.preview}>
      <p role="status" className={styles.news}>
        {news || "In the sandbox, with a payload that is made up. Answers go nowhere."}
      </p>
      {payload !== undefined && (
        <Suspense fallback={<Bones lines={3} />}>
          <LazyFrame
            key={`${source} ${text}`}
            source={source}
            payload={payload}
            title={`Preview of ${name}`}
            onResponse={(value) => setNews(`It answered ${JSON.stringify(value)}`)}
            onCancel={() => setNews("It was cancelled.")}
            onFail={(reason) => setNews(`The form takes its place, because ${reason}.`)}
          />
        </Suspense>
      )}
      <Field label="Payload" error={payload === undefined ? "This is not JSON." : undefined}>
        {(id, described) => (
          <textarea
            {...described}
            id={id}
            spellCheck={false}
            className={styles.payload}
            value={text}
            onChange={(event) => {
              setText(event.target.value);
              setNews("");
            }}
          />
        )}
      </Field>
    </div>
  );
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
