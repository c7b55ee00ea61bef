import { Plus } from "lucide-react";
import { useState } from "react";
import type { ReactNode } from "react";

import { go } from "../../app/url";
import { Button } from "../../parts";
import type { StartedAnswer } from "../../protocol/api";
import { lastOf } from "../../run/select";
import type { RunView } from "../../run/view";
import { pathOf, post } from "../../transport/http";

/** A button that starts another run with the same inputs, where that is possible. */
export function useRestart(view: RunView): { error: unknown; button: ReactNode } {
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const start = startOf(view);

  async function startAgain() {
    setBusy(true);
    try {
      const { run } = await post<StartedAnswer>("/api/runs", { ...start, force: true });
      go(`/runs${pathOf(run)}`);
    } catch (problem) {
      setError(problem);
      setBusy(false);
    }
  }

  const button = start && (
    <Button icon={<Plus />} busy={busy} onClick={() => void startAgain()}>
      New run with the same start
    </Button>
  );
  return { error, button };
}

/** What started the run; null for what begins otherwise, as runs of boards do. */
function startOf(view: RunView): Record<string, unknown> | null {
  const begun = lastOf(view, "RunStarted", view.seq)?.data;
  if (!begun || begun.correlation || begun.collects || begun.schedule) return null;
  const given = begun.given ?? [];
  const values = Object.fromEntries(given.map((name) => [name, begun.values?.[name]]));
  const said = view.items.until(view.seq).find((item) => item.kind === "user");
  return {
    workflow: begun.workflow,
    message: begun.with_message === false ? null : (said?.text ?? null),
    input: begun.input ?? null,
    ...(given.length > 0 && !begun.input && { values }),
    ...(begun.model && { model: begun.model }),
  };
}
