import type { UseQueryResult } from "@tanstack/react-query";
import { useState } from "react";

import { can, useMe } from "../../app/session";
import { Link } from "../../app/url";
import { ChangeDialog } from "../../packages/ChangeDialog";
import { FindingList } from "../../packages/FindingList";
import { fileOf, fixTitle } from "../../packages/findings";
import { Button, Empty, Loaded } from "../../parts";
import type { FindingsAnswer, PackageChangeAnswer, WorkflowAnswer } from "../../protocol/api";
import { pathOf, post } from "../../transport/http";
import { placeUrl } from "./words";
import styles from "./workflows.module.css";

interface FindingsTabProps {
  workflow: WorkflowAnswer;
  query: UseQueryResult<FindingsAnswer>;
}

/** What the checker found; what has a safe fix is fixed here, after a look at the difference. */
export function FindingsTab({ workflow: { name, owner }, query }: FindingsTabProps) {
  const me = useMe();
  const [codes, setCodes] = useState<string[] | null>(null);
  const canFix = can(me, "developer") && owner !== "shipped";
  const findings = query.data?.findings ?? [];
  const fixable = [...new Set(findings.filter(fixTitle).map(({ code }) => code))];
  return (
    <div className={styles.tab}>
      <Loaded query={query} lines={6}>
        {() =>
          findings.length === 0 && (
            <Empty title="No findings">Every rule of the checker holds for this package.</Empty>
          )
        }
      </Loaded>
      {canFix && fixable.length > 1 && (
        <div>
          <Button variant="main" onClick={() => setCodes(fixable)}>
            Preview all fixes
          </Button>
        </div>
      )}
      <FindingList
        findings={findings}
        name={name}
        place={(finding, text) => (
          <Link to={placeUrl(name, fileOf(finding, name), finding.line)}>{text}</Link>
        )}
        actions={({ code }) =>
          canFix &&
          fixable.includes(code) && <Button onClick={() => setCodes([code])}>Preview the fix</Button>
        }
      />
      {codes && (
        <ChangeDialog
          title={`Fix ${codes.join(", ")}`}
          verb="Apply"
          change={({ dryRun }) =>
            post<PackageChangeAnswer>(`/api/workflows${pathOf(name)}/fixes?dry_run=${dryRun}`, { codes })
          }
          onDone={() => setCodes(null)}
          onClose={() => setCodes(null)}
        />
      )}
    </div>
  );
}
