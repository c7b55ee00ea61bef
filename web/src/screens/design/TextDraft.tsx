import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import type { ReactNode } from "react";

import { FileText } from "../../packages/FileText";
import { Button, Problem } from "../../parts";
import { ApiProblem } from "../../transport/http";
import styles from "./design.module.css";

interface TextDraftProps {
  /** The name that the server gives the text in its findings. */
  path: string;
  /** The text to begin with, and the line to begin at; then it is that of the first mistake. */
  first: string;
  line?: number;
  /** The button that sends it, as a verb. */
  action: string;
  send: (text: string) => Promise<unknown>;
  /** Buttons beside it. */
  children?: ReactNode;
}

/** A text that the server reads and checks: what is wrong is shown at its line. */
export function TextDraft({ path, first, line, action, send, children }: TextDraftProps) {
  const [text, setText] = useState(first);
  const { mutate, reset, isPending, error } = useMutation({ mutationFn: () => send(text) });

  const findings = error instanceof ApiProblem ? error.findings : [];

  function edit(now: string) {
    if (error !== null) reset();
    setText(now);
  }

  return (
    <>
      {error !== null && <Problem error={error} />}
      <div className={styles.editor}>
        <FileText
          path={path}
          text={text}
          name=""
          findings={findings}
          tools={[]}
          line={findings[0]?.line ?? line}
          onChange={edit}
          onSave={() => mutate()}
        />
      </div>
      <div className={styles.row}>
        <Button variant="main" busy={isPending} onClick={() => mutate()}>
          {action}
        </Button>
        {children}
      </div>
    </>
  );
}
