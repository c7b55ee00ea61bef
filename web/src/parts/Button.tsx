import type { ButtonHTMLAttributes, ReactNode, Ref } from "react";

import styles from "./Button.module.css";

export interface ButtonProps extends ButtonHTMLAttributes<HTMLButtonElement> {
  /** main: the one action of a place; quiet: others; bare: without a border; link: in a text. */
  variant?: "main" | "quiet" | "bare" | "link";
  icon?: ReactNode;
  /** The action is under way: shown, and not done twice. */
  busy?: boolean;
  ref?: Ref<HTMLButtonElement>;
}

export function Button({
  variant = "quiet",
  icon,
  busy = false,
  className = "",
  children,
  disabled,
  ...props
}: ButtonProps) {
  const shape = children === undefined ? styles.square : "";
  return (
    <button
      type="button"
      {...props}
      className={`${styles.button} ${styles[variant]} ${shape} ${className}`}
      disabled={disabled || busy}
      aria-busy={busy || undefined}
    >
      {busy ? <span className={styles.busy} /> : icon}
      {children}
    </button>
  );
}
