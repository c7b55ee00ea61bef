import type { FindingAnswer } from "../protocol/api";
import styles from "./Files.module.css";
import { countOf, fileOf } from "./findings";

export interface FileTreeProps {
  paths: readonly string[];
  /** The name of the package: places of findings begin with it. */
  name: string;
  findings: readonly FindingAnswer[];
  selected: string;
  /** Paths with changes that are not saved. */
  changed?: ReadonlySet<string>;
  onSelect: (path: string) => void;
}

/** The files of a package by folder, with the number of findings in each. */
export function FileTree({ paths, name, findings, selected, changed, onSelect }: FileTreeProps) {
  const counts = new Map<string, number>();
  for (const finding of findings) {
    const file = fileOf(finding, name);
    counts.set(file, (counts.get(file) ?? 0) + 1);
  }
  return (
    <nav aria-label="Files" className={styles.tree}>
      {folders(paths).map(([folder, files]) => (
        <ul key={folder} aria-label={folder || name}>
          {folder && <li className={styles.folder}>{folder}</li>}
          {files.map((path) => (
            <li key={path}>
              <button
                type="button"
                className={styles.file}
                aria-current={path === selected ? "true" : undefined}
                onClick={() => onSelect(path)}
              >
                <span>{path.slice(folder.length)}</span>
                {changed?.has(path) && <span className={styles.changed}>edited</span>}
                {counts.has(path) && (
                  <span className={styles.count} title={countOf(counts.get(path) ?? 0, "finding")}>
                    {counts.get(path)}
                    <span className="unseen"> findings</span>
                  </span>
                )}
              </button>
            </li>
          ))}
        </ul>
      ))}
    </nav>
  );
}

/** The files of each folder, those of the package itself first. */
function folders(paths: readonly string[]): [string, string[]][] {
  const found = new Map<string, string[]>();
  for (const path of [...paths].sort()) {
    const folder = path.slice(0, path.lastIndexOf("/") + 1);
    found.set(folder, [...(found.get(folder) ?? []), path]);
  }
  return [...found].sort(([one], [other]) => one.localeCompare(other));
}
