import { useEffect } from "react";
import type { ReactNode } from "react";

import styles from "./Page.module.css";

export interface PageProps {
  title: string;
  actions?: ReactNode;
  children: ReactNode;
}

/** A screen with a title. */
export function Page({ title, actions, children }: PageProps) {
  useEffect(() => {
    document.title = `${title} · Weft`;
  }, [title]);
  return (
    <div className={styles.page}>
      <header className={styles.header}>
        <h1>{title}</h1>
        {actions && <div className={styles.actions}>{actions}</div>}
      </header>
      {children}
    </div>
  );
}

/** A name or a value in the line. */
export function Code({ children }: { children: ReactNode }) {
  return <code>{children}</code>;
}
