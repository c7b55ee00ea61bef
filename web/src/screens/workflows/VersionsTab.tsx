import { useQuery } from "@tanstack/react-query";
import { useState } from "react";

import { can, useMe } from "../../app/session";
import { ChangeDialog } from "../../packages/ChangeDialog";
import { Button, Chip, Code, Loaded, Table, Time } from "../../parts";
import type { PackageChangeAnswer, VersionAnswer, VersionsAnswer, WorkflowAnswer } from "../../protocol/api";
import { get, pathOf, post } from "../../transport/http";
import styles from "./workflows.module.css";

/** What has changed the package; a former version is compared, and brought back. */
export function VersionsTab({ workflow: { name, owner } }: { workflow: WorkflowAnswer }) {
  const me = useMe();
  const [chosen, setChosen] = useState<VersionAnswer | null>(null);
  // Packages of all tenants are changed by administrators only.
  const shared = owner === "shared" && can(me, "administrator");
  const path = `/api/packages${pathOf(name)}`;
  const versions = useQuery({
    queryKey: ["workflow", name, "versions"],
    queryFn: () => get<VersionsAnswer>(`${path}/versions?shared=${shared}`),
  });
  const canRollBack = can(me, "operator");
  return (
    <div className={styles.tab}>
      <Loaded query={versions}>
        {({ items }) => (
          <Table
            label="Versions"
            items={items}
            keyOf={({ version, at }) => `${version} ${at}`}
            empty="Nothing has changed this package here. Every change is kept from now on."
            columns={[
              { title: "When", cell: ({ at }) => <Time at={at} /> },
              { title: "What", cell: ({ action }) => action },
              { title: "Who", cell: ({ user }) => user },
              { title: "Version", cell: ({ version }) => <Code>{version.slice(0, 12)}</Code> },
              {
                title: "Actions",
                isUntitled: true,
                cell: (version) =>
                  version.is_present ? (
                    <Chip tone="good">present</Chip>
                  ) : (
                    canRollBack &&
                    version.is_kept && <Button onClick={() => setChosen(version)}>Compare</Button>
                  ),
              },
            ]}
          />
        )}
      </Loaded>
      {chosen && (
        <ChangeDialog
          title={`From the present version to ${chosen.version.slice(0, 12)}`}
          verb="Roll back"
          change={({ dryRun }) =>
            post<PackageChangeAnswer>(`${path}/rollback?dry_run=${dryRun}&shared=${shared}`, {
              version: chosen.version,
            })
          }
          onDone={() => setChosen(null)}
          onClose={() => setChosen(null)}
        />
      )}
    </div>
  );
}
