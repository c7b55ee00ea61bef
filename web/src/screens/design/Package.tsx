import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";

import { can, useMe } from "../../app/session";
import { go, setQuery, useRoute } from "../../app/url";
import { ChangeDialog } from "../../packages/ChangeDialog";
import { FileText } from "../../packages/FileText";
import { FileTree } from "../../packages/FileTree";
import { FindingList, Health } from "../../packages/FindingList";
import { countOf } from "../../packages/findings";
import { Button, Chip, Loaded, Problem, Segmented, Splitter } from "../../parts";
import type { DesignedAnswer, OfferAnswer, PackageChangeAnswer } from "../../protocol/api";
import type { RunStore } from "../../run/store";
import type { Request } from "../../run/view";
import { download, get, pathOf, upload } from "../../transport/http";
import styles from "./design.module.css";
import { Offer } from "./Offer";

interface PackageProps {
  run: string;
  packages: readonly string[];
  /** It grows when the run begins to work, waits or ends. */
  phase: number;
  /** The question what becomes of the packages, while it is open. */
  promotion: Request | null;
  store: RunStore;
}

/** What a design has made: its files and findings, a preview of its components, and the way to run it. */
export function Package({ run, packages, phase, promotion, store }: PackageProps) {
  const me = useMe();
  const { query } = useRoute();
  const [isInstalling, setInstalling] = useState(false);
  const name = packages.find((each) => each === query.get("package")) ?? packages[0] ?? "";
  const queries = useQueryClient();
  const offered = ["plan", run, "offer", phase];
  const offer = useQuery({
    queryKey: offered,
    queryFn: () => get<OfferAnswer>(`/api/plans${pathOf(run)}/offer`),
  });
  const files = useQuery({
    queryKey: ["plan", run, "files", name],
    queryFn: () => get<DesignedAnswer>(`/api/plans${pathOf(run)}/files?package=${encodeURIComponent(name)}`),
  });
  const decline = useMutation({
    mutationFn: (request: string) => store.answer(request, { promotion: "declined" }),
  });
  const bundle = `/api/plans${pathOf(run)}/bundle.zip?package=${encodeURIComponent(name)}`;

  async function install({ dryRun, force }: { dryRun: boolean; force: boolean }) {
    const path = `/api/packages?dry_run=${dryRun}&force=${force}`;
    const done = await upload<PackageChangeAnswer>(path, await download(bundle));
    if (!dryRun && promotion) await store.answer(promotion.id, { promotion: "approved" });
    return done;
  }

  function show(checked: OfferAnswer) {
    queries.setQueryData(offered, checked);
    void queries.invalidateQueries({ queryKey: ["plan", run, "files"] });
  }

  if (!files.data) return <Loaded query={files} lines={8}>{() => null}</Loaded>;
  if (!offer.data) return <Loaded query={offer} lines={8}>{() => null}</Loaded>;
  const { items, findings } = files.data;
  const errors = findings.filter(({ severity }) => severity === "error").length;
  const path = items.find((item) => item.path === query.get("file"))?.path ?? "agents.json";
  const content = items.find((item) => item.path === path)?.content ?? "";
  return (
    <>
      <div className={styles.report} role="region" aria-label="What was made" tabIndex={0}>
        <div className={styles.row}>
          {packages.length > 1 ? (
            <Segmented
              label="Package"
              value={name}
              options={packages.map((each) => ({ value: each, label: each }))}
              onChange={(value) => setQuery({ package: value })}
            />
          ) : (
            <strong>{name}</strong>
          )}
          {countOf(items.length, "file")}
          <Health errors={errors} warnings={findings.length - errors} />
          {!offer.data.promotable && <Chip tone="bad">not ready</Chip>}
          {offer.data.skeleton.length > 0 && <Chip tone="wait">skeleton</Chip>}
          <a href={bundle} download className={styles.last}>
            Download
          </a>
          {promotion && (
            <Button busy={decline.isPending} onClick={() => decline.mutate(promotion.id)}>
              Not now
            </Button>
          )}
          {can(me, "operator") && offer.data.promotable && (
            <Button variant="main" onClick={() => setInstalling(true)}>
              Install
            </Button>
          )}
        </div>
        {decline.error && <Problem error={decline.error} />}
        <Offer run={run} offer={offer.data} name={name} onChecked={show} />
        {findings.length > 0 && (
          <details>
            <summary>{countOf(findings.length, "finding")}</summary>
            <FindingList findings={findings} name={name} />
          </details>
        )}
      </div>
      <Splitter
        name="the files"
        start={25}
        left={
          <FileTree
            paths={items.map((item) => item.path)}
            name={name}
            findings={findings}
            selected={path}
            onSelect={(file) => setQuery({ file })}
          />
        }
        right={
          <FileText
            path={path}
            text={content}
            name={name}
            findings={findings}
            tools={toolsOf(items)}
          />
        }
      />
      {isInstalling && (
        <ChangeDialog
          title={`Install ${name}`}
          verb="Install"
          change={install}
          consent={({ lost }) =>
            lost.length ? `Replace ${countOf(lost.length, "file")} that somebody has changed here` : null
          }
          onDone={(done) => go(`/workflows${pathOf(done.name)}`)}
          onClose={() => setInstalling(false)}
        />
      )}
    </>
  );
}

/** The tools that a package declares; none if its file cannot be read. */
function toolsOf(items: DesignedAnswer["items"]): unknown {
  const file = items.find(({ path }) => path === "tools.json");
  try {
    return (JSON.parse(file?.content ?? "{}") as { tools?: unknown }).tools;
  } catch {
    return [];
  }
}
