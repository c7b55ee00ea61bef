import { useQuery } from "@tanstack/react-query";
import { X } from "lucide-react";
import { useState } from "react";

import { ActionDialog, Button, Dialog, Field, valueText } from "../../parts";
import type { ModelsAnswer } from "../../protocol/api";
import { messageOf, turnUnder } from "../../run/select";
import type { Turn } from "../../run/view";
import { get } from "../../transport/http";
import { declaredAt, literalsOf } from "./pack";
import type { Declared } from "./pack";
import type { PaneProps } from "./pane";
import styles from "./Panes.module.css";

interface ForkDialogProps extends PaneProps {
  /** The event to fork at. */
  at: number;
  onClose: () => void;
  onForked: (run: string) => void;
}

/** Repeats a turn with other values or another model, as a run of its own. */
export default function ForkDialog(props: ForkDialogProps) {
  const turn = turnUnder(props.view, props.at) ?? props.view.turns.at(0);
  if (turn) return <Form {...props} turn={turn} />;
  return (
    <Dialog open title="Fork this run" onClose={props.onClose}>
      <p>No agent has taken a turn yet, so there is nothing to repeat.</p>
    </Dialog>
  );
}

function Form({ turn, view, store, pack, onClose, onForked }: ForkDialogProps & { turn: Turn }) {
  const declared = declaredAt(pack, view, turn.seq);
  const [names, setNames] = useState<readonly string[]>([]);
  const models = useQuery({ queryKey: ["models"], queryFn: () => get<ModelsAnswer>("/api/models") });
  const said = messageOf(view, turn);
  const place = `turn ${turn.number} of ${turn.step || turn.agent}`;
  const edited = declared.filter(({ name }) => names.includes(name));
  const others = declared.filter(({ name }) => !names.includes(name));

  async function fork(fields: FormData) {
    const edits = edited.map((variable) => [variable.name, readValue(variable, fields)]);
    const model = String(fields.get("model")) || null;
    const text = fields.get("message")?.toString().trim();
    const message = text && text !== said ? text : null;
    onForked(await store.fork({ at: turn.seq, edits: Object.fromEntries(edits), message, model }));
  }

  return (
    <ActionDialog title={`Fork at ${place}`} action="Fork" perform={fork} onClose={onClose}>
      <p className={styles.quiet}>
        A new run is made. What happened before {place}, up to event {turn.seq}, is copied; then the turn
        is taken again, with new calls. This run stays as it is.
      </p>
      {said !== null && (
        <Field label="Message">
          {(id) => <textarea id={id} name="message" required defaultValue={said} />}
        </Field>
      )}
      {edited.map((variable) => (
        <div key={variable.name} className={styles.edit}>
          <Editor variable={variable} />
          <Button
            variant="bare"
            icon={<X />}
            aria-label={`Leave ${variable.name} as it was`}
            onClick={() => setNames(names.filter((name) => name !== variable.name))}
          />
        </div>
      ))}
      {others.length > 0 && (
        <Field label="Change a variable">
          {(id) => (
            <select id={id} value="" onChange={(event) => setNames([...names, event.target.value])}>
              <option value="">{names.length ? "Another…" : "None"}</option>
              {others.map(({ name }) => (
                <option key={name}>{name}</option>
              ))}
            </select>
          )}
        </Field>
      )}
      <Field label="Model" hint="Who answers from here on. The sample model makes answers up, without a key.">
        {(id, described) => (
          <select id={id} {...described} name="model">
            <option value="">As in this run</option>
            {[...new Set(["sample", ...(models.data?.items ?? []).map(({ name }) => name)])].map((name) => (
              <option key={name}>{name}</option>
            ))}
          </select>
        )}
      </Field>
    </ActionDialog>
  );
}

function Editor({ variable }: { variable: Declared }) {
  const { name, type, value } = variable;
  const choices = type === "bool" ? ["true", "false"] : literalsOf(type);
  const control = {
    name: fieldOf(variable),
    defaultValue: isText(variable) ? valueText(value ?? "") : JSON.stringify(value),
  };
  return (
    <Field label={name} hint={type}>
      {(id, described) =>
        choices ? (
          <select id={id} {...described} {...control}>
            {choices.map((choice) => (
              <option key={choice}>{choice}</option>
            ))}
          </select>
        ) : (
          <textarea id={id} {...described} {...control} />
        )
      }
    </Field>
  );
}

function fieldOf({ name }: Declared): string {
  return `variable ${name}`;
}

/** A text is written as it is, everything else as JSON. */
function isText({ type }: Declared): boolean {
  return type === "str" || literalsOf(type) !== null;
}

function readValue(variable: Declared, fields: FormData): unknown {
  const text = String(fields.get(fieldOf(variable)));
  if (isText(variable)) return text;
  try {
    return JSON.parse(text);
  } catch {
    throw new Error(`${variable.name} is ${variable.type}: write it as JSON, with quotes around texts`);
  }
}
