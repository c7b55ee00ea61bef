import { useEffect, useRef, useState } from "react";

import { Dialog } from "../parts";
import styles from "./keys.module.css";

/** What a key does, and with a label it is listed by "?". */
export type Binding = (() => void) | readonly [label: string, run: () => void];
type Bindings = Record<string, Binding>;

const registered: { current: Bindings }[] = [];

const SHOWN: Record<string, string> = { " ": "Space", ArrowLeft: "←", ArrowRight: "→" };

/** Bind keys while the component is mounted; the component that came last has precedence. */
export function useKeys(bindings: Record<string, Binding>): void {
  const latest = useRef(bindings);
  useEffect(() => {
    latest.current = bindings;
  });
  useEffect(() => {
    registered.push(latest);
    return () => {
      registered.splice(registered.indexOf(latest), 1);
    };
  }, []);
}

/** The help for the keys, opened by "?". */
export function KeysHelp() {
  const [isOpen, setOpen] = useState(false);
  useKeys({ "?": ["Show the keys", () => setOpen(true)] });
  return (
    <Dialog open={isOpen} title="Keys" onClose={() => setOpen(false)}>
      <dl className={styles.keys}>
        {labels().map(([key, label]) => (
          <div key={key}>
            <dt>
              <kbd>{SHOWN[key] ?? key}</kbd>
            </dt>
            <dd>{label}</dd>
          </div>
        ))}
      </dl>
    </Dialog>
  );
}

function labels(): [string, string][] {
  const all = new Map<string, string>([["Ctrl K", "Find a screen, a workflow or a run"]]);
  for (const bindings of registered) {
    for (const [key, binding] of Object.entries(bindings.current)) {
      if (typeof binding !== "function") all.set(key, binding[0]);
    }
  }
  return [...all];
}

function press(event: KeyboardEvent): void {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
  if (belongsToControl(event) || document.querySelector("dialog[open], :popover-open")) return;
  for (const bindings of registered.toReversed()) {
    const binding = bindings.current[event.key];
    if (!binding) continue;
    event.preventDefault();
    if (typeof binding === "function") binding();
    else binding[1]();
    return;
  }
}

/** Whether the key is for the control that has the focus: text, or a key that presses it. */
function belongsToControl(event: KeyboardEvent): boolean {
  const control = event.target;
  if (!(control instanceof HTMLElement)) return false;
  if (control.isContentEditable || control.matches("textarea, select")) return true;
  if (control instanceof HTMLInputElement) {
    return !["range", "checkbox", "radio", "button"].includes(control.type) || event.key === " ";
  }
  return event.key === " " && control.matches("button, summary, a[href]");
}

window.addEventListener("keydown", press);
