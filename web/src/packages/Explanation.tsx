import { useQuery } from "@tanstack/react-query";
import { useState } from "react";

import { Bones, Problem } from "../parts";
import type { Rule } from "../protocol/api";
import { get, pathOf } from "../transport/http";
import styles from "./FindingList.module.css";

/** Why a rule exists and what to do about it, unfolded on request. */
export function Explanation({ code }: { code: string }) {
  const [isOpen, setOpen] = useState(false);
  const { data, error } = useQuery({
    queryKey: ["code", code],
    queryFn: () => get<Rule>(`/api/codes${pathOf(code)}`),
    enabled: isOpen,
    staleTime: Infinity,
  });
  return (
    <details className={styles.why} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>Why it matters</summary>
      {error && <Problem error={error} />}
      {isOpen && !data && !error && <Bones lines={2} />}
      {data && (
        <>
          <p>
            <strong>{data.title}.</strong> {data.why}
          </p>
          <p>{data.fix}</p>
          <pre tabIndex={0}>{data.example}</pre>
        </>
      )}
    </details>
  );
}
