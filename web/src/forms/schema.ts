/** What a form draws for a JSON Schema, and the values between them. */
import { readableName } from "../requests/Payload";
import { valueText } from "../parts";

export type Schema = Record<string, unknown>;

export interface Option {
  label: string;
  value: unknown;
}

/** line: short text; text: long text; moment: a date with a time; json: what cannot be drawn. */
export type FieldKind =
  | "line" | "text" | "secret" | "email" | "url" | "date" | "moment" | "number" | "check" | "choice"
  | "choices" | "object" | "list" | "json";

export interface Field {
  kind: FieldKind;
  name: string;
  label: string;
  hint: string;
  isRequired: boolean;
  /** Null is a value of it. */
  isNullable: boolean;
  schema: Schema;
  options: Option[];
  fields: Field[];
  /** Of a list: what each item is. */
  item: Field | null;
}

/** What is typed into a field: text, whether it is checked, or what is typed into its parts. */
export type Draft = string | boolean | Draft[] | { [name: string]: Draft };

// Deeper objects, and those that contain themselves, are edited as JSON.
const DEEPEST = 5;
const LONG_TEXT = 400;
const MOST_REFERENCES = 20;

const FORMATS: Record<string, FieldKind> = {
  password: "secret", email: "email", uri: "url", date: "date", "date-time": "moment",
  textarea: "text", multiline: "text", markdown: "text",
};

/** Return what is drawn for a whole schema. */
export function readForm(schema: Schema): Field {
  return readField(schema, schema, "", true, 0);
}

function readField(
  part: Schema,
  root: Schema,
  name: string,
  isRequired: boolean,
  depth: number,
): Field {
  const { schema, isNullable } = simplified(part, root);
  const kind = kindOf(schema, root, depth);
  const required = (schema.required ?? []) as string[];
  const of = (items: unknown) => simplified(items as Schema, root).schema;
  return {
    kind,
    name,
    label: String(schema.title ?? (name ? readableName(name) : "Answer")),
    hint: String(schema.description ?? ""),
    isRequired,
    isNullable,
    schema,
    options: kind === "choice" ? optionsOf(schema) : kind === "choices" ? optionsOf(of(schema.items)) : [],
    fields:
      kind === "object"
        ? Object.entries(schema.properties as Record<string, Schema>).map(([each, inner]) =>
            readField(inner, root, each, required.includes(each), depth + 1),
          )
        : [],
    item: kind === "list" ? readField(schema.items as Schema, root, "", true, depth + 1) : null,
  };
}

/** Follow references, and take apart what only says that a value may be null. */
function simplified(part: Schema, root: Schema): { schema: Schema; isNullable: boolean } {
  let schema = part;
  let isNullable = false;
  for (let count = 0; count < MOST_REFERENCES; count += 1) {
    const { $ref, anyOf, oneOf, ...rest } = schema;
    const branches = ((anyOf ?? oneOf) as Schema[] | undefined)?.filter(({ type }) => type !== "null");
    const parts = schema.allOf as Schema[] | undefined;
    if (typeof $ref === "string" && $ref.startsWith("#/")) {
      schema = { ...find(root, $ref), ...schema, $ref: undefined };
    } else if (parts?.length === 1) {
      schema = { ...parts[0], ...schema, allOf: undefined };
    } else if (branches?.length === 1) {
      isNullable ||= ((anyOf ?? oneOf) as Schema[]).length > 1;
      schema = { ...branches[0], ...rest };
    } else break;
  }
  const { type } = schema;
  if (Array.isArray(type)) {
    const types = type.filter((each) => each !== "null");
    isNullable ||= types.length < type.length;
    schema = { ...schema, type: types.length === 1 ? types[0] : undefined };
  }
  return { schema, isNullable };
}

function find(root: Schema, reference: string): Schema {
  const steps = reference.slice(2).split("/");
  let found: unknown = root;
  for (const step of steps) {
    const name = decodeURIComponent(step).replaceAll("~1", "/").replaceAll("~0", "~");
    found = isObject(found) ? found[name] : undefined;
  }
  return isObject(found) ? found : {};
}

function kindOf(schema: Schema, root: Schema, depth: number): FieldKind {
  if (optionsOf(schema).length > 0) return "choice";
  switch (schema.type ?? (schema.properties ? "object" : "")) {
    case "string":
      if (schema.writeOnly === true) return "secret";
      if (Number(schema.maxLength) >= LONG_TEXT) return "text";
      return FORMATS[String(schema.format)] ?? "line";
    case "integer":
    case "number":
      return "number";
    case "boolean":
      return "check";
    case "object":
      return isDrawable(schema) && depth < DEEPEST ? "object" : "json";
    case "array": {
      if (!isObject(schema.items) || schema.prefixItems || depth >= DEEPEST) return "json";
      const items = simplified(schema.items, root).schema;
      if (optionsOf(items).length > 0) return "choices";
      return kindOf(items, root, depth + 1) === "json" ? "json" : "list";
    }
    default:
      return "json";
  }
}

/** Whether an object has only the properties that are drawn. */
function isDrawable(schema: Schema): boolean {
  const { properties, allOf = [], anyOf = [], oneOf = [], then = {}, else: other = {} } = schema;
  if (!isObject(properties) || Object.keys(properties).length === 0) return false;
  const branches = [allOf, anyOf, oneOf, then, other].flat().filter(isObject);
  const names = branches.flatMap((branch) => Object.keys(branch.properties ?? {}));
  return names.every((name) => name in properties);
}

function optionsOf(schema: Schema): Option[] {
  if (Array.isArray(schema.enum)) return schema.enum.map(option);
  if ("const" in schema) return [option(schema.const)];
  // A boolean without a default is a question, which is not answered by leaving it.
  if (schema.type === "boolean" && schema.default === undefined) {
    return [{ label: "Yes", value: true }, { label: "No", value: false }];
  }
  const branches = (schema.oneOf ?? schema.anyOf ?? []) as Schema[];
  if (!branches.every((branch) => isObject(branch) && "const" in branch)) return [];
  return branches.map((branch) => ({ ...option(branch.const), ...textOf(branch.title) }));
}

function option(value: unknown): Option {
  const text = valueText(value);
  return { label: /^[a-z]+(_[a-z]+)*$/.test(text) ? readableName(text) : text, value };
}

function textOf(title: unknown): { label?: string } {
  return typeof title === "string" ? { label: title } : {};
}

// -- values

export const MISSING = "Please fill this in.";

/** Return what stands in a field at first. */
export function draftOf(field: Field, given?: unknown): Draft {
  const value = given === undefined ? field.schema.default : given;
  switch (field.kind) {
    case "object": {
      const values = isObject(value) ? value : {};
      return Object.fromEntries(field.fields.map((each) => [each.name, draftOf(each, values[each.name])]));
    }
    case "list":
      return Array.isArray(value) ? value.map((each) => draftOf(field.item!, each)) : [];
    case "choices":
      return (Array.isArray(value) ? value : []).map((each) => placeOf(field, each)).filter(Boolean);
    case "choice":
      return field.isRequired && field.options.length === 1 ? "0" : placeOf(field, value);
    case "check":
      return value === true;
    case "moment":
      return typeof value === "string" ? localTime(value) : "";
    case "json":
      return value === undefined ? "" : JSON.stringify(value, null, 2);
    case "secret":
      return "";
    default:
      return value === undefined || value === null ? "" : String(value);
  }
}

function placeOf(field: Field, value: unknown): string {
  const place = field.options.findIndex((each) => valueText(each.value) === valueText(value ?? null));
  return place < 0 ? "" : String(place);
}

/** Return the value of a field; undefined if it is left out. What is no JSON is noted. */
export function valueOf(field: Field, draft: Draft, path: string, errors: Map<string, string>): unknown {
  const { kind, schema, options } = field;
  if (kind === "check") return draft;
  if (kind === "choices") return omitEmpty(field, (draft as string[]).map((each) => options[Number(each)]!.value));
  if (kind === "list") {
    const values = (draft as Draft[]).map((each, index) => {
      const place = `${path}/${index}`;
      const value = valueOf(field.item!, each, place, errors);
      if (value === undefined && !errors.has(place)) errors.set(place, MISSING);
      return value ?? null;
    });
    return omitEmpty(field, values);
  }
  if (kind === "object") {
    const drafts = draft as { [name: string]: Draft };
    const values = field.fields
      .map((each) => [each.name, valueOf(each, drafts[each.name]!, placeIn(path, each.name), errors)])
      .filter(([, value]) => value !== undefined);
    return values.length === 0 && !field.isRequired ? undefined : Object.fromEntries(values);
  }
  const text = draft as string;
  if (text.trim() === "") {
    if (field.isRequired) return field.isNullable ? null : undefined;
    // A default that was deleted is not wanted.
    return schema.type === "string" && schema.default ? "" : undefined;
  }
  switch (kind) {
    case "choice":
      return options[Number(text)]!.value;
    case "number":
      return Number.isFinite(Number(text)) ? Number(text) : text;
    case "moment":
      return new Date(text).toISOString();
    case "json":
      return jsonOf(schema, text, path, errors);
    default:
      return text;
  }
}

/** JSON; where any value is taken, also a text without quotation marks. */
function jsonOf(schema: Schema, text: string, path: string, errors: Map<string, string>): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    if (schema.type !== "object" && schema.type !== "array") return text;
    errors.set(path, `This is not valid JSON: ${(error as Error).message}`);
    return undefined;
  }
}

function omitEmpty(field: Field, values: unknown[]): unknown[] | undefined {
  return values.length > 0 || field.isRequired || field.schema.default ? values : undefined;
}

/** Return the place of a property, as a JSON pointer. */
export function placeIn(path: string, name: string): string {
  return `${path}/${name.replaceAll("~", "~0").replaceAll("/", "~1")}`;
}

/** A moment as the browser's control for it has it: in the zone of the reader. */
function localTime(text: string): string {
  const moment = new Date(text);
  if (Number.isNaN(moment.getTime())) return "";
  return new Date(moment.getTime() - moment.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
