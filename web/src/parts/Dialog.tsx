import { X } from "lucide-react";
import { useEffect, useId, useRef } from "react";
import type { MouseEvent, ReactNode } from "react";

import { Button } from "./Button";
import styles from "./Dialog.module.css";

export interface DialogProps {
  open: boolean;
  title: string;
  onClose: () => void;
  children: ReactNode;
  /** The buttons below. */
  footer?: ReactNode;
}

/** A modal dialog. Its content is made anew each time it opens. */
export function Dialog(props: DialogProps) {
  return props.open ? <OpenDialog {...props} /> : null;
}

function OpenDialog({ title, onClose, children, footer }: DialogProps) {
  const id = useId();
  const dialog = useRef<HTMLDialogElement>(null);
  const body = useRef<HTMLDivElement>(null);

  useEffect(() => {
    const before = document.activeElement;
    dialog.current?.showModal();
    // The browser would choose the button that closes.
    body.current?.querySelector<HTMLElement>("input, select, textarea, button")?.focus();
    return () => {
      if (before instanceof HTMLElement) before.focus();
    };
  }, []);

  function closeFromOutside(event: MouseEvent) {
    if (event.target === dialog.current) onClose();
  }

  return (
    <dialog
      ref={dialog}
      aria-labelledby={id}
      className={styles.dialog}
      onMouseDown={closeFromOutside}
      onCancel={(event) => {
        event.preventDefault();
        onClose();
      }}
    >
      <div className={styles.content}>
        <header className={styles.header}>
          <h2 id={id}>{title}</h2>
          <Button variant="bare" icon={<X />} aria-label="Close" onClick={onClose} />
        </header>
        <div ref={body} className={styles.body}>{children}</div>
        {footer && <footer className={styles.footer}>{footer}</footer>}
      </div>
    </dialog>
  );
}
