import { lazy, Suspense, useState } from "react";
import type { ReactNode } from "react";

import { Bones, Segmented } from "../parts";
import type { FindingAnswer } from "../protocol/api";
import styles from "./Files.module.css";
import { fileOf } from "./findings";
import { Preview } from "./Preview";

const CodeEditor = lazy(() => import("./CodeEditor"));

export interface FileTextProps {
  path: string;
  text: string;
  /** The name of the package, and what was found in all of it. */
  name: string;
  findings: readonly FindingAnswer[];
  /** The tools of the package: they say what its components are given. */
  tools: unknown;
  line?: number;
  /** Without it, the text can only be read. */
  onChange?: (text: string) => void;
  onSave?: () => void;
  /** What stands above the text. */
  bar?: ReactNode;
}

/** The text of a file with its findings; a component can be seen as people see it. */
export function FileText({ path, text, name, findings, tools, bar, ...editor }: FileTextProps) {
  const [view, setView] = useState<"code" | "preview">("code");
  const component = /^tools\/(\w+)\.jsx$/.exec(path)?.[1];
  const here = findings.filter((finding) => fileOf(finding, name) === path);
  return (
    <>
      {(bar || component) && (
        <div className={styles.bar}>
          {component && (
            <Segmented
              label="View"
              value={view}
              options={[
                { value: "code", label: "Code" },
                { value: "preview", label: "Preview" },
              ]}
              onChange={setView}
            />
          )}
          {bar}
        </div>
      )}
      {component && view === "preview" ? (
        <Preview key={path} name={component} source={text} tools={tools} />
      ) : (
        <Suspense fallback={<Bones lines={8} />}>
          <CodeEditor path={path} text={text} findings={here} {...editor} />
        </Suspense>
      )}
    </>
  );
}
