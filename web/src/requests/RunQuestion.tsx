import { useQuery } from "@tanstack/react-query";

import { Problem } from "../parts";
import type { RunAnswer } from "../protocol/api";
import { closedAt, headAt, openAt, requestAt } from "../run/select";
import type { RunStore } from "../run/store";
import type { RunView } from "../run/view";
import { get, pathOf } from "../transport/http";
import { RequestCard } from "./RequestCard";

export interface RunQuestionProps {
  id: string;
  store: RunStore;
  view: RunView;
  /** The event up to which the run is shown, and whether that is its end. */
  seq: number;
  isLive: boolean;
}

/** The card of a question of a run that is followed. */
export function RunQuestion({ id, store, view, seq, isLive }: RunQuestionProps) {
  const request = requestAt(view, id, seq);
  const closed = closedAt(view, id, seq);
  const isOpen = !view.closed.has(id);
  // Whose the run is, and what fits as an answer.
  const open = openAt(view, view.seq).map((each) => each.id);
  const run = useQuery({
    queryKey: ["run", view.run, open.join(" ")],
    queryFn: () => get<RunAnswer>(`/api/runs${pathOf(view.run)}`),
    enabled: isOpen,
    // Another question does not empty the form of this one.
    placeholderData: (before) => before,
  });
  if (!request) return null;
  if (isOpen && run.error) return <Problem error={run.error} onRetry={() => void run.refetch()} />;
  const user = headAt(view, view.seq)?.user || (run.data?.user ?? "");
  const schema = run.data?.requests.find((each) => each.id === id)?.response_schema;
  return (
    <div inert={!closed && !isLive}>
      <RequestCard
        run={view.run}
        request={{ ...request, user, expires_at: request.expiresAt, response_schema: schema }}
        closed={closed}
        send={(value) => store.answer(id, value)}
        cancel={() => store.cancelRequest(id)}
      />
    </div>
  );
}
