import { useState } from "react";

import { Button } from "./Button";
import styles from "./Copy.module.css";

export function CopyButton({ text, label }: { text: string; label: string }) {
  const [isCopied, setCopied] = useState(false);
  // The clipboard is only there on https and on the own machine.
  if (!navigator.clipboard) return null;
  return (
    <Button variant="bare" onClick={() => navigator.clipboard.writeText(text).then(() => setCopied(true))}>
      {isCopied ? "Copied" : label}
    </Button>
  );
}

/** A secret that the server shows only now. */
export function Secret({ what, value }: { what: string; value: string }) {
  return (
    <div role="status" className={styles.secret}>
      <p>{what}. Copy it now: it is not shown again.</p>
      <code>{value}</code>
      <CopyButton text={value} label="Copy" />
    </div>
  );
}
