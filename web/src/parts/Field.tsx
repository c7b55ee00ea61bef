import { useId } from "react";
import type { InputHTMLAttributes, ReactNode } from "react";

import styles from "./Field.module.css";

export interface FieldProps {
  label: ReactNode;
  hint?: ReactNode;
  error?: string;
  /** It has several controls, and so no one to which the label belongs. */
  group?: boolean;
  /** The control: it takes the id, and what describes it. */
  children: (id: string, described: Described) => ReactNode;
}

export interface Described {
  "aria-describedby"?: string;
  "aria-invalid"?: true;
}

/** A label, a control, and what is to be known about it. */
export function Field({ label, hint, error, group, children }: FieldProps) {
  const id = useId();
  const notes = [error ? `${id}-error` : "", hint ? `${id}-hint` : ""].filter(Boolean).join(" ");
  const described: Described = {
    "aria-describedby": notes || undefined,
    "aria-invalid": error ? true : undefined,
  };
  const Box = group ? "fieldset" : "div";
  return (
    <Box className={styles.field}>
      {group ? (
        <legend className={styles.label}>{label}</legend>
      ) : (
        <label htmlFor={id} className={styles.label}>
          {label}
        </label>
      )}
      {children(id, described)}
      {error && (
        <p id={`${id}-error`} className={styles.error}>
          {error}
        </p>
      )}
      {hint && (
        <p id={`${id}-hint`} className={styles.hint}>
          {hint}
        </p>
      )}
    </Box>
  );
}

export interface TextFieldProps extends InputHTMLAttributes<HTMLInputElement> {
  label: string;
  hint?: string;
}

/** A line of text in a form that is read by the names of its fields. */
export function TextField({ label, hint, ...input }: TextFieldProps) {
  return (
    <Field label={label} hint={hint}>
      {(id, described) => <input {...described} {...input} id={id} />}
    </Field>
  );
}
