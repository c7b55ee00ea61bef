import { useQuery } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import type { KeyboardEvent } from "react";

import { Dialog } from "../parts";
import type { MeAnswer, RunsAnswer, WorkflowsAnswer } from "../protocol/api";
import { get, pathOf } from "../transport/http";
import styles from "./Palette.module.css";
import { screensOf } from "./screens";
import { useLogOut, useMe } from "./session";
import { setTheme } from "./theme";
import { go } from "./url";

interface Choice {
  kind: "Screen" | "Workflow" | "Run" | "Command";
  label: string;
  note?: string;
  act: () => void;
}

const SHOWN_AT_MOST = 12;

/** Ctrl+K: find a screen, a workflow, a run or a command by a part of its name. */
export function Palette() {
  const [isOpen, setOpen] = useState(false);

  useEffect(() => {
    function toggle(event: globalThis.KeyboardEvent) {
      if (event.key !== "k" || !(event.ctrlKey || event.metaKey) || event.shiftKey) return;
      event.preventDefault();
      setOpen((open) => !open);
    }
    window.addEventListener("keydown", toggle);
    return () => window.removeEventListener("keydown", toggle);
  }, []);

  return (
    <Dialog open={isOpen} title="Go to" onClose={() => setOpen(false)}>
      <Finder onDone={() => setOpen(false)} />
    </Dialog>
  );
}

function Finder({ onDone }: { onDone: () => void }) {
  const [text, setText] = useState("");
  const [index, setIndex] = useState(0);
  const found = findChoices(useChoices(), text).slice(0, SHOWN_AT_MOST);
  const current = Math.min(index, found.length - 1);

  function choose(choice: Choice | undefined) {
    if (!choice) return;
    onDone();
    choice.act();
  }

  function move(event: KeyboardEvent) {
    if (event.key === "ArrowDown") setIndex((current + 1) % found.length);
    else if (event.key === "ArrowUp") setIndex((current - 1 + found.length) % found.length);
    else if (event.key === "Enter") choose(found[current]);
    else return;
    event.preventDefault();
  }

  return (
    <>
      <input
        autoFocus
        role="combobox"
        aria-label="Search"
        aria-expanded="true"
        aria-controls="palette"
        aria-activedescendant={found.length ? `palette-${current}` : undefined}
        placeholder="Screen, workflow, run or command"
        value={text}
        onKeyDown={move}
        onChange={(event) => {
          setText(event.target.value);
          setIndex(0);
        }}
      />
      <ul id="palette" role="listbox" aria-label="Found" className={styles.list}>
        {found.map((choice, place) => (
          <li
            key={`${choice.kind} ${choice.label} ${choice.note ?? ""}`}
            id={`palette-${place}`}
            role="option"
            aria-selected={place === current}
            className={styles.choice}
            onMouseMove={() => setIndex(place)}
            onClick={() => choose(choice)}
          >
            <span className={styles.label}>{choice.label}</span>
            <span className={styles.note}>{choice.note}</span>
            <span className={styles.kind}>{choice.kind}</span>
          </li>
        ))}
      </ul>
      {found.length === 0 && <p className={styles.none}>Nothing has this name.</p>}
    </>
  );
}

/** The choices that have every word of the text, in any order. */
export function findChoices<T extends { label: string; note?: string }>(
  choices: readonly T[],
  text: string,
): T[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  return choices.filter(({ label, note = "" }) => {
    const all = `${label} ${note}`.toLowerCase();
    return words.every((word) => all.includes(word));
  });
}

function useChoices(): Choice[] {
  const me = useMe();
  const logOut = useLogOut();
  const workflows = useQuery({
    queryKey: ["workflows"],
    queryFn: () => get<WorkflowsAnswer>("/api/workflows"),
  });
  const runs = useQuery({
    queryKey: ["runs", "palette"],
    queryFn: () => get<RunsAnswer>("/api/runs?limit=50"),
  });
  return [
    ...screenChoices(me),
    ...(workflows.data?.items ?? []).map(
      ({ name, description }): Choice => ({
        kind: "Workflow",
        label: name,
        note: description,
        act: () => go(`/workflows${pathOf(name)}`),
      }),
    ),
    ...(runs.data?.items ?? []).map(
      ({ run, name, workflow, preview }): Choice => ({
        kind: "Run",
        label: name || preview || workflow,
        note: `${workflow} …${run.slice(-6)}`,
        act: () => go(`/runs${pathOf(run)}`),
      }),
    ),
    { kind: "Command", label: "Use the light theme", act: () => setTheme("light") },
    { kind: "Command", label: "Use the dark theme", act: () => setTheme("dark") },
    { kind: "Command", label: "Use the theme of the system", act: () => setTheme("system") },
    { kind: "Command", label: "Read the HTTP API", act: () => location.assign("/docs") },
    { kind: "Command", label: "Log out", act: () => void logOut() },
  ];
}

function screenChoices(me: MeAnswer): Choice[] {
  return screensOf(me).map(({ name, label }) => ({
    kind: "Screen",
    label,
    act: () => go(`/${name}`),
  }));
}
