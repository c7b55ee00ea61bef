import { createContext, useContext } from "react";
import type { ReactNode } from "react";

import { Code, Table, Value, valueText } from "../parts";
import { Fields, isListOfTexts, readableName } from "../requests/Payload";
import styles from "./Structure.module.css";

type Entry = Readonly<Record<string, unknown>>;

/** What a screen adds to an entry that has a name: a mark, buttons, something below. */
export interface Note {
  mark?: string;
  actions?: ReactNode;
  below?: ReactNode;
}

/** Returns what is added to the last name of a trail, such as a module and its agent. */
export const Notes = createContext<(trail: readonly string[], entry: Entry) => Note>(() => ({}));

const NAMES = ["name", "agent_name", "module_name", "workflow_name", "component", "agent"];
const ABOUTS = ["purpose", "objective", "module_description", "workflow_description", "description", "summary"];

/** Whatever a package or a plan declares, for reading: nothing of it is known beforehand. */
export function Structure({ value, trail = [] }: { value: Entry; trail?: readonly string[] }) {
  const entries = Object.entries(value).filter(([, each]) => !isEmpty(each));
  const flat = entries.filter(([, each]) => isFlat(each));
  const nested = entries.filter(([, each]) => !isFlat(each));
  return (
    <>
      <Fields values={Object.fromEntries(flat)} />
      {nested.map(([name, each]) => (
        <div key={name} className={styles.part}>
          <p>{readableName(name)}</p>
          {Array.isArray(each) ? (
            <Entries label={readableName(name)} list={each} trail={trail} />
          ) : nameOf(each as Entry) ? (
            <Named entry={each as Entry} trail={trail} />
          ) : (
            <div className={styles.inner}>
              <Structure value={each as Entry} trail={trail} />
            </div>
          )}
        </div>
      ))}
    </>
  );
}

interface NamedProps {
  entry: Entry;
  trail: readonly string[];
  /** What belongs to it and is declared elsewhere. */
  children?: ReactNode;
}

/** An entry with a name: what it is called and is for, and the rest of it. */
export function Named({ entry, trail, children }: NamedProps) {
  const name = nameOf(entry) ?? "";
  const about = ABOUTS.find((key) => typeof entry[key] === "string");
  const known = [about, NAMES.find((key) => entry[key] === name)];
  const rest = Object.fromEntries(Object.entries(entry).filter(([key]) => !known.includes(key)));
  const own = [...trail, name];
  const { mark, actions, below } = useContext(Notes)(own, entry);
  return (
    <article className={`${styles.entry} ${mark ? styles.marked : ""}`} aria-label={name}>
      <header className={styles.header}>
        <h3>{name}</h3>
        {mark && <span className={styles.mark}>{mark}</span>}
        {actions}
      </header>
      {below}
      {about && <p>{String(entry[about])}</p>}
      <Structure value={rest} trail={own} />
      {children}
    </article>
  );
}

interface EntriesProps {
  label: string;
  list: readonly unknown[];
  trail: readonly string[];
}

/** A list: as a table where it has room, as lines inside of another entry, as cards otherwise. */
export function Entries({ label, list, trail }: EntriesProps) {
  const note = useContext(Notes);
  if (!list.every(isEntry)) return <Value value={list} max={280} />;
  const keys = [...new Set(list.flatMap((entry) => Object.keys(entry)))].filter((key) =>
    list.some((entry) => !isEmpty(entry[key])),
  );
  const isSimple = list.every((entry) => keys.every((key) => isFlat(entry[key])));
  if (isSimple && trail.length > 1 && list.every(nameOf)) {
    return list.map((entry) => <Line key={nameOf(entry)} entry={entry} trail={trail} />);
  }
  if (!isSimple || keys.length > 5 || (list.length === 1 && nameOf(list[0] as Entry))) {
    return (
      <div className={styles.grid}>
        {list.map((entry, index) =>
          nameOf(entry) ? (
            <Named key={`${nameOf(entry)} ${index}`} entry={entry} trail={trail} />
          ) : (
            <div key={index} className={styles.entry}>
              <Structure value={entry} trail={trail} />
            </div>
          ),
        )}
      </div>
    );
  }
  const notes = new Map(list.map((entry) => [entry, note([...trail, nameOf(entry) ?? label], entry)]));
  const hasNotes = [...notes.values()].some(({ actions }) => actions);
  return (
    <Table
      label={label}
      items={list}
      keyOf={(entry, index) => `${nameOf(entry)} ${index}`}
      columns={[
        ...keys.map((key) => ({
          title: readableName(key),
          cell: (entry: Entry) => (
            <>
              <span className={NAMES.includes(key) ? styles.name : undefined}>
                <Cell value={entry[key]} />
              </span>
              {key === keys[0] && notes.get(entry)?.mark && (
                <span className={styles.mark}>{notes.get(entry)?.mark}</span>
              )}
            </>
          ),
        })),
        ...(hasNotes
          ? [
              {
                title: "Notes",
                isUntitled: true,
                cell: (entry: Entry) => (
                  <>
                    {notes.get(entry)?.actions}
                    {notes.get(entry)?.below}
                  </>
                ),
              },
            ]
          : []),
      ]}
    />
  );
}

/** An entry inside of another one: its name, what it is for, and the rest in one line. */
function Line({ entry, trail }: { entry: Entry; trail: readonly string[] }) {
  const name = nameOf(entry) ?? "";
  const about = ABOUTS.find((key) => typeof entry[key] === "string");
  const { mark, actions, below } = useContext(Notes)([...trail, name], entry);
  const rest = Object.entries(entry).filter(
    ([key, each]) => key !== about && each !== name && !isEmpty(each),
  );
  return (
    <div className={styles.line}>
      <header className={styles.header}>
        <Code>{name}</Code>
        {mark && <span className={styles.mark}>{mark}</span>}
        {actions}
      </header>
      {below}
      {about && <p>{String(entry[about])}</p>}
      <small>
        {rest.map(([key, each]) => `${readableName(key)}: ${valueText(each)}`).join(" · ")}
      </small>
    </div>
  );
}

function Cell({ value }: { value: unknown }) {
  if (isEmpty(value)) return null;
  return isListOfTexts(value) ? value.join(", ") : <Value value={value} />;
}

export function nameOf(entry: Entry): string | undefined {
  const key = NAMES.find((name) => typeof entry[name] === "string" && entry[name] !== "");
  return key && String(entry[key]);
}

function isEntry(value: unknown): value is Entry {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isFlat(value: unknown): boolean {
  return typeof value !== "object" || value === null || isListOfTexts(value) || isEmpty(value);
}

function isEmpty(value: unknown): boolean {
  if (typeof value !== "object") return value === undefined || value === "";
  return value === null || Object.values(value).every(isEmpty);
}
