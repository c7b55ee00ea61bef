import { Facts, Value } from "../parts";
import styles from "./Payload.module.css";

const TITLES = ["question", "title", "prompt", "message", "text"];

/** What a payload says in one sentence, and the rest of it. */
export function splitPayload(payload: unknown): { title: string; rest: Record<string, unknown> } {
  if (typeof payload === "string") return { title: payload, rest: {} };
  if (typeof payload !== "object" || payload === null) return { title: "", rest: {} };
  const rest = { ...payload } as Record<string, unknown>;
  const name = TITLES.find((each) => typeof rest[each] === "string" && rest[each] !== "");
  const title = name ? String(rest[name]) : "";
  if (name) delete rest[name];
  return { title, rest };
}

/** The fields of a payload or of an answer, for reading. */
export function Fields({ values, name = "value" }: { values: unknown; name?: string }) {
  const isObject = typeof values === "object" && values !== null && !Array.isArray(values);
  const entries = Object.entries(isObject ? values : { [name]: values });
  if (entries.length === 0) return null;
  const shown = entries.map(([name, value]) => [
    readableName(name),
    isListOfTexts(value) ? <Texts key={name} texts={value} /> : <Readable key={name} value={value} />,
  ]);
  return <Facts values={Object.fromEntries(shown)} />;
}

function Readable({ value }: { value: unknown }) {
  if (typeof value === "boolean") return value ? "yes" : "no";
  return <Value value={value} max={280} />;
}

function Texts({ texts }: { texts: string[] }) {
  return (
    <ul className={styles.texts}>
      {texts.map((text, index) => (
        <li key={index}>{text}</li>
      ))}
    </ul>
  );
}

export function isListOfTexts(value: unknown): value is string[] {
  return Array.isArray(value) && value.length > 0 && value.every((each) => typeof each === "string");
}

/** "wants_person" is read as "Wants person". */
export function readableName(name: string): string {
  const words = name.replaceAll(/[_-]+/g, " ").replaceAll(/([a-z])([A-Z])/g, "$1 $2").trim();
  return words.charAt(0).toUpperCase() + words.slice(1).toLowerCase();
}
