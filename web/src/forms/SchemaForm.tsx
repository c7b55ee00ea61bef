import { Plus, X } from "lucide-react";
import { useEffect, useMemo, useRef, useState } from "react";
import type { FormEvent, KeyboardEvent } from "react";

import { Button, Field as Labelled, Problem } from "../parts";
import type { Described } from "../parts/Field";
import type { SchemaFormProps } from ".";
import { checkForm, serverErrors, type Errors } from "./check";
import { draftOf, placeIn, readForm, type Draft, type Field, type FieldKind } from "./schema";
import styles from "./SchemaForm.module.css";

// More options than this are a list that opens.
const MOST_RADIOS = 4;

const TYPES: Partial<Record<FieldKind, string>> = {
  secret: "password", email: "email", url: "url", date: "date", moment: "datetime-local",
};

export function SchemaForm(props: SchemaFormProps) {
  const { schema, value, submitLabel, onSubmit, busy, error, secondary } = props;
  const form = useMemo(() => readForm(schema), [schema]);
  const [draft, setDraft] = useState(() => draftOf(form, value));
  const [tries, setTries] = useState(0);
  // What the server said is true of what was sent, not of what is typed after it.
  const [dismissed, dismiss] = useState<unknown>(null);
  const element = useRef<HTMLFormElement>(null);

  const refused = error === dismissed ? null : error;
  const own: Errors = tries > 0 ? checkForm(schema, form, draft).errors : new Map();
  const errors: Errors = new Map([...serverErrors(refused, form), ...own]);
  const whole = form.kind === "object" ? own.get("") : undefined;

  useEffect(() => {
    if (tries === 0 && !refused) return;
    element.current?.querySelector<HTMLElement>('[aria-invalid="true"]')?.focus();
  }, [tries, refused]);

  function submit(event: FormEvent) {
    event.preventDefault();
    const checked = checkForm(schema, form, draft);
    dismiss(error);
    if (checked.errors.size > 0) setTries(tries + 1);
    else onSubmit(checked.value);
  }

  function change(next: Draft) {
    setDraft(next);
    dismiss(error);
  }

  return (
    <form ref={element} noValidate className={styles.form} onSubmit={submit}>
      {form.kind === "object" ? (
        <Parts field={form} draft={draft} path="" errors={errors} onChange={change} />
      ) : (
        <FieldView field={form} draft={draft} path="" errors={errors} onChange={change} />
      )}
      {whole && (
        <p role="alert" className={styles.error}>
          {whole}
        </p>
      )}
      {refused !== null && refused !== undefined && <Problem error={refused} />}
      <div className={styles.buttons}>
        <Button type="submit" variant="main" busy={busy}>
          {submitLabel}
        </Button>
        {secondary}
      </div>
    </form>
  );
}

interface FieldViewProps {
  field: Field;
  draft: Draft;
  path: string;
  errors: Errors;
  onChange: (draft: Draft) => void;
  /** Its label is only for screen readers. */
  isLabelUnseen?: boolean;
}

function Parts({ field, draft, path, errors, onChange }: FieldViewProps) {
  const drafts = draft as { [name: string]: Draft };
  return field.fields.map((each) => (
    <FieldView
      key={each.name}
      field={each}
      draft={drafts[each.name]!}
      path={placeIn(path, each.name)}
      errors={errors}
      onChange={(next) => onChange({ ...drafts, [each.name]: next })}
    />
  ));
}

const GROUPS: readonly FieldKind[] = ["object", "list", "choices"];

function FieldView(props: FieldViewProps) {
  const { field, path, errors, isLabelUnseen } = props;
  const isRadio = field.kind === "choice" && field.isRequired && field.options.length <= MOST_RADIOS;
  const isOptional = !field.isRequired && field.schema.default === undefined;
  const notes = [isOptional && "optional", field.kind === "json" && "JSON"].filter(Boolean);
  if (field.kind === "check") return <Check {...props} />;
  return (
    <Labelled
      group={isRadio || GROUPS.includes(field.kind)}
      label={
        <span className={isLabelUnseen ? "unseen" : undefined}>
          {field.label}
          {notes.length > 0 && <span className={styles.notes}> {notes.join(", ")}</span>}
        </span>
      }
      hint={field.hint}
      error={errors.get(path)}
    >
      {(id, described) => {
        if (field.kind === "object") {
          return (
            <div className={styles.inner}>
              <Parts {...props} />
            </div>
          );
        }
        if (field.kind === "list") return <List {...props} described={described} />;
        if (field.kind === "choices" || isRadio) return <Boxes {...props} id={id} described={described} />;
        return <Control {...props} id={id} described={described} />;
      }}
    </Labelled>
  );
}

interface ControlProps extends FieldViewProps {
  id: string;
  described: Described;
}

function Control({ field, draft, onChange, id, described }: ControlProps) {
  const { kind, schema } = field;
  const given = {
    ...described,
    id,
    value: draft as string,
    required: field.isRequired,
    onChange: (event: { target: { value: string } }) => onChange(event.target.value),
  };
  if (kind === "choice") {
    return (
      <select {...given}>
        <option value="">{field.isRequired ? "Choose" : "–"}</option>
        {field.options.map((each, index) => (
          <option key={index} value={index}>
            {each.label}
          </option>
        ))}
      </select>
    );
  }
  if (kind === "text") return <textarea {...given} rows={3} />;
  if (kind === "json") return <textarea {...given} className={styles.code} spellCheck={false} />;
  if (kind === "line") return <textarea {...given} rows={1} className={styles.line} onKeyDown={sendOnEnter} />;
  const mode = schema.type === "integer" ? "numeric" : "decimal";
  return (
    <input
      {...given}
      type={TYPES[kind] ?? "text"}
      inputMode={kind === "number" ? mode : undefined}
      autoComplete={kind === "secret" ? "off" : undefined}
    />
  );
}

/** A line grows with its text, so it is an area; Enter does in it what it does in a line. */
function sendOnEnter(event: KeyboardEvent<HTMLTextAreaElement>): void {
  if (event.key !== "Enter" || event.shiftKey || event.nativeEvent.isComposing) return;
  event.preventDefault();
  event.currentTarget.form?.requestSubmit();
}

function Check({ field, draft, path, errors, onChange }: FieldViewProps) {
  const error = errors.get(path);
  return (
    <div className={styles.check}>
      <label>
        <input
          type="checkbox"
          checked={draft as boolean}
          aria-invalid={error ? true : undefined}
          onChange={(event) => onChange(event.target.checked)}
        />
        {field.label}
      </label>
      {error && <p className={styles.error}>{error}</p>}
      {field.hint && <p>{field.hint}</p>}
    </div>
  );
}

/** One of a few options, or any number of them. */
function Boxes({ field, draft, onChange, id, described }: ControlProps) {
  const chosen = field.kind === "choices" ? (draft as string[]) : [draft as string];
  function choose(place: string, isChosen: boolean) {
    if (field.kind === "choice") return onChange(place);
    // In the order of the options.
    const places = field.options.map((_, index) => String(index));
    onChange(places.filter((each) => (each === place ? isChosen : chosen.includes(each))));
  }
  return (
    <div className={styles.boxes}>
      {field.options.map((each, index) => (
        <label key={index}>
          <input
            {...described}
            type={field.kind === "choices" ? "checkbox" : "radio"}
            name={id}
            checked={chosen.includes(String(index))}
            onChange={(event) => choose(String(index), event.target.checked)}
          />
          {each.label}
        </label>
      ))}
    </div>
  );
}

function List({ field, draft, path, errors, onChange, described }: FieldViewProps & { described: Described }) {
  const drafts = draft as Draft[];
  const item = field.item!;
  const add = useRef<HTMLButtonElement>(null);
  return (
    <div className={styles.list}>
      {drafts.map((each, index) => (
        <div key={index} className={styles.item}>
          <FieldView
            field={{ ...item, label: `${field.label} ${index + 1}` }}
            isLabelUnseen={item.kind !== "object"}
            draft={each}
            path={`${path}/${index}`}
            errors={errors}
            onChange={(next) => onChange(drafts.with(index, next))}
          />
          <Button
            variant="bare"
            icon={<X />}
            aria-label={`Remove ${field.label} ${index + 1}`}
            onClick={() => {
              onChange(drafts.toSpliced(index, 1));
              add.current?.focus();
            }}
          />
        </div>
      ))}
      <Button
        ref={add}
        icon={<Plus />}
        aria-label={`Add to ${field.label}`}
        {...described}
        onClick={() => onChange([...drafts, draftOf(item)])}
      >
        Add
      </Button>
    </div>
  );
}
