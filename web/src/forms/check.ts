/** What is wrong with the values of a form, by place: according to its schema, or to the server. */
import { Validator, type OutputUnit } from "@cfworker/json-schema";

import { ApiProblem } from "../transport/http";
import { MISSING, type Draft, type Field, type Schema, placeIn, valueOf } from "./schema";

export type Errors = ReadonlyMap<string, string>;

/** These only say that something inside is wrong. */
const OUTER = new Set(["$ref", "properties", "items", "allOf", "anyOf", "if", "then", "else"]);

export interface Checked {
  value: unknown;
  errors: Errors;
}

export function checkForm(schema: Schema, form: Field, draft: Draft): Checked {
  const errors = new Map<string, string>();
  const value = valueOf(form, draft, "", errors);
  if (value === undefined && errors.size === 0) errors.set("", MISSING);
  for (const unit of value === undefined ? [] : schemaErrors(schema, value)) {
    if (OUTER.has(unit.keyword)) continue;
    const missing = /required property "(.*)"/.exec(unit.error)?.[1];
    const pointer = unit.instanceLocation.slice(1);
    const { field, place, inside } = drawnAt(form, missing ? placeIn(pointer, missing) : pointer);
    if (errors.has(place)) continue;
    const message = missing ? MISSING : messageOf(unit, field);
    errors.set(place, inside ? `${inside}: ${missing ? "this is missing." : unit.error}` : message);
  }
  return { value, errors };
}

function schemaErrors(schema: Schema, value: unknown): OutputUnit[] {
  try {
    return new Validator(schema, "2020-12", false).validate(value).errors;
  } catch {
    return []; // A pattern that only the server understands; it checks everything again.
  }
}

function messageOf({ keyword, error }: OutputUnit, { schema }: Field): string {
  const messages: Record<string, string | undefined> = {
    type: TYPES[String(schema.type)],
    enum: "Choose one of the options.",
    minLength: `Write at least ${schema.minLength} characters.`,
    maxLength: `Write at most ${schema.maxLength} characters.`,
    minimum: `At least ${schema.minimum}.`,
    maximum: `At most ${schema.maximum}.`,
    exclusiveMinimum: `More than ${schema.exclusiveMinimum}.`,
    exclusiveMaximum: `Less than ${schema.exclusiveMaximum}.`,
    multipleOf: `A multiple of ${schema.multipleOf}.`,
    minItems: `At least ${schema.minItems} of them.`,
    maxItems: `At most ${schema.maxItems} of them.`,
    uniqueItems: "Each of them once.",
    format: FORMATS[String(schema.format)] ?? `This is not a valid ${schema.format}.`,
    pattern: `This does not match ${schema.pattern}`,
  };
  return messages[keyword] ?? error;
}

const TYPES: Record<string, string> = {
  number: "Write a number.",
  integer: "Write a whole number.",
};

const FORMATS: Record<string, string> = {
  email: "This is not an address for mail.",
  uri: "This is not an address; it begins with https://, for example.",
};

/** Return the field that is drawn for a place, and what remains of the place inside of it. */
function drawnAt(form: Field, pointer: string): { field: Field; place: string; inside: string } {
  let field = form;
  let place = "";
  const steps = pointer.split("/").filter(Boolean).map(stepName);
  for (const [index, step] of steps.entries()) {
    const inner = field.item ?? field.fields.find((each) => each.name === step);
    if (!inner) return { field, place, inside: steps.slice(index).join(".") };
    field = inner;
    place = placeIn(place, step);
  }
  return { field, place, inside: "" };
}

function stepName(step: string): string {
  return decodeURIComponent(step).replaceAll("~1", "/").replaceAll("~0", "~");
}

/** Find the fields that the server names, as in "order.amount: expected float". */
export function serverErrors(error: unknown, form: Field): Errors {
  const errors = new Map<string, string>();
  if (!(error instanceof ApiProblem)) return errors;
  for (const line of [error.message, ...error.cause_]) {
    for (const [, where = "", text = ""] of line.matchAll(/(?:^|: )([^\s:]+): (?=(.+))/g)) {
      const steps = where.split(".");
      for (let from = 0; from < steps.length; from += 1) {
        const { place } = drawnAt(form, steps.slice(from).reduce(placeIn, ""));
        if (!place) continue;
        errors.set(place, text);
        break;
      }
    }
  }
  return errors;
}
