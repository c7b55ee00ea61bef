import { Suspense, lazy } from "react";
import type { ReactNode } from "react";

import { Bones } from "../parts";

export interface SchemaFormProps {
  /** The JSON Schema of what is asked for. */
  schema: Record<string, unknown>;
  /** What the fields hold at first. */
  value?: unknown;
  submitLabel: string;
  onSubmit: (value: unknown) => void;
  busy?: boolean;
  /** What the server said of the last try; fields that it names are marked. */
  error?: unknown;
  /** A button beside the one that submits. */
  secondary?: ReactNode;
}

const SchemaForm = lazy(() =>
  import("./SchemaForm").then((module) => ({ default: module.SchemaForm })),
);

/** A form made from a JSON Schema; what it cannot draw is edited as JSON. Loaded when it is used. */
export function LazySchemaForm(props: SchemaFormProps) {
  return (
    <Suspense fallback={<Bones lines={3} />}>
      <SchemaForm {...props} />
    </Suspense>
  );
}
