import { Ellipsis } from "lucide-react";
import { useId, useRef } from "react";
import type { KeyboardEvent, ReactNode, ToggleEvent } from "react";

import { Button } from "./Button";
import styles from "./Menu.module.css";

export interface MenuItem {
  label: string;
  onClick: () => void;
  disabled?: boolean;
}

export interface MenuProps {
  label: string;
  items: readonly MenuItem[];
  /** What the button shows; without it, three dots. */
  children?: ReactNode;
}

/** A button that opens a list of actions. */
export function Menu({ label, items, children }: MenuProps) {
  const id = useId();
  const button = useRef<HTMLButtonElement>(null);
  const list = useRef<HTMLDivElement>(null);

  function place(event: ToggleEvent) {
    if (event.newState !== "open" || !button.current || !list.current) return;
    const at = button.current.getBoundingClientRect();
    const { offsetWidth: width, offsetHeight: height } = list.current;
    const left = Math.max(8, Math.min(at.right - width, innerWidth - width - 8));
    const isBelow = at.bottom + 4 + height < innerHeight;
    list.current.style.left = `${left}px`;
    list.current.style.top = `${isBelow ? at.bottom + 4 : Math.max(8, at.top - 4 - height)}px`;
    entries(list.current)[0]?.focus();
  }

  function move(event: KeyboardEvent) {
    const all = entries(list.current);
    const index = all.indexOf(document.activeElement as HTMLButtonElement);
    const steps: Record<string, number> = {
      ArrowDown: index + 1,
      ArrowUp: index - 1 + all.length,
      Home: 0,
      End: all.length - 1,
    };
    const step = steps[event.key];
    if (step === undefined) return;
    event.preventDefault();
    all[step % all.length]?.focus();
  }

  function choose(item: MenuItem) {
    list.current?.hidePopover();
    item.onClick();
  }

  return (
    <>
      <Button
        ref={button}
        variant={children ? "quiet" : "bare"}
        icon={children ? undefined : <Ellipsis />}
        aria-label={label}
        title={label}
        aria-haspopup="menu"
        popoverTarget={id}
      >
        {children}
      </Button>
      <div
        ref={list}
        id={id}
        popover="auto"
        role="menu"
        aria-label={label}
        className={styles.menu}
        onToggle={place}
        onKeyDown={move}
      >
        {items.map((item) => (
          <button
            key={item.label}
            type="button"
            role="menuitem"
            tabIndex={-1}
            disabled={item.disabled}
            className={styles.item}
            onClick={() => choose(item)}
          >
            {item.label}
          </button>
        ))}
      </div>
    </>
  );
}

function entries(list: HTMLElement | null): HTMLButtonElement[] {
  return [...(list?.querySelectorAll<HTMLButtonElement>("button:not(:disabled)") ?? [])];
}
