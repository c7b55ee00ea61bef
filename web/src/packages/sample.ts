type Schema = Record<string, unknown>;

/** A value that fits a JSON Schema, for looking at what is made for such values. */
export function sampleOf(schema: Schema, name = ""): unknown {
  const { enum: choices, examples, items, properties } = schema;
  if ("default" in schema) return schema.default;
  if ("const" in schema) return schema.const;
  if (Array.isArray(examples) && examples.length) return examples[0];
  if (Array.isArray(choices)) return choices[0];
  const type = Array.isArray(schema.type) ? schema.type[0] : schema.type;
  if (type === "object" || properties) {
    const entries = Object.entries((properties ?? {}) as Record<string, Schema>);
    return Object.fromEntries(entries.map(([key, inner]) => [key, sampleOf(inner, key)]));
  }
  if (type === "array") return [sampleOf((items ?? {}) as Schema, String(schema.title ?? name))];
  if (type === "number" || type === "integer") return schema.minimum ?? 1;
  if (type === "boolean") return true;
  if (type === "null") return null;
  return String(schema.title ?? name.replaceAll("_", " "));
}

/** The schema of the payload that a component draws; `tools` are those of its package. */
export function payloadSchemaOf(tools: unknown, component: string): Schema {
  const list = Array.isArray(tools) ? (tools as Schema[]) : [];
  const tool = list.find(({ ui }) => (ui as Schema | undefined)?.component === component);
  return (tool?.payload_schema ?? { type: "object" }) as Schema;
}
