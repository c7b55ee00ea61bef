import { useState } from "react";

import { Dialog, Field, Loaded } from "../parts";
import type { WorkflowsAnswer } from "../protocol/api";
import { useGet } from "../transport/queries";
import styles from "./Start.module.css";
import { StartForm } from "./StartForm";

export interface StartDialogProps {
  /** Without it, it can be chosen. */
  workflow?: string;
  onClose: () => void;
}

/** Starts a run. */
export function StartDialog({ workflow, onClose }: StartDialogProps) {
  return (
    <Dialog open title={workflow ? `Start ${workflow}` : "New run"} onClose={onClose}>
      {workflow ? <StartForm name={workflow} /> : <AnyWorkflow />}
    </Dialog>
  );
}

function AnyWorkflow() {
  const workflows = useGet<WorkflowsAnswer>(["workflows"], "/api/workflows");
  return (
    <Loaded query={workflows}>
      {({ items }) => <Choice names={items.map(({ name }) => name)} />}
    </Loaded>
  );
}

function Choice({ names }: { names: readonly string[] }) {
  const [chosen, setChosen] = useState<string>();
  const name = chosen ?? names[0];
  if (name === undefined) return <p>There is no workflow yet.</p>;
  return (
    <div className={styles.start}>
      <Field label="Workflow">
        {(id) => (
          <select id={id} value={name} onChange={(event) => setChosen(event.target.value)}>
            {names.map((each) => (
              <option key={each}>{each}</option>
            ))}
          </select>
        )}
      </Field>
      <StartForm key={name} name={name} />
    </div>
  );
}
