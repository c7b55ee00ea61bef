import { useQueryClient } from "@tanstack/react-query";
import { useEffect, useRef, useState } from "react";

import { can, useMe } from "../../app/session";
import { Link, setQuery, useRoute } from "../../app/url";
import { Clock, Empty, Loaded, Page, Segmented } from "../../parts";
import type { RequestAnswer, RequestsAnswer } from "../../protocol/api";
import { splitPayload } from "../../requests/Payload";
import { RequestCard } from "../../requests/RequestCard";
import { del, pathOf, post } from "../../transport/http";
import { useGet } from "../../transport/queries";
import styles from "./Inbox.module.css";

const REFRESH_MS = 5_000;

const WHOSE = [
  { value: "me", label: "For me" },
  { value: "all", label: "For anybody" },
];

/** Open questions over all runs: those for the person and their roles, answered in place. */
export default function InboxScreen() {
  const me = useMe();
  const isStaff = can(me, "developer") || can(me, "operator");
  const { query } = useRoute();
  const whose = isStaff && query.get("whose") === "all" ? "all" : "me";
  const [answered, setAnswered] = useState<RequestAnswer | null>(null);
  const queries = useQueryClient();
  const requests = useGet<RequestsAnswer>(
    ["requests", whose],
    whose === "me" ? "/api/requests?for=me" : "/api/requests",
    { refetchInterval: REFRESH_MS, staleTime: 0 },
  );

  function close(request: RequestAnswer) {
    setAnswered(request);
    void queries.invalidateQueries({ queryKey: ["requests"] });
  }

  return (
    <Page
      title="Inbox"
      actions={
        isStaff && (
          <Segmented
            label="Whose questions"
            value={whose}
            options={WHOSE}
            onChange={(value) => setQuery({ whose: value === "all" ? "all" : null })}
          />
        )
      }
    >
      <div className={styles.inbox}>
        {answered && (
          <Done key={answered.id} request={answered} isVisible={isStaff || answered.user === me.user} />
        )}
        <Loaded query={requests} lines={6}>
          {({ items, next }) => (
            <>
              {items.length === 0 && (
                <Empty title="Nothing waits for you" action={<Link to="/runs">Look at the runs</Link>}>
                  When an agent has a question for you or for one of your roles, it is here.
                </Empty>
              )}
              {items.length > 0 && <h2 className="unseen">Open questions</h2>}
              {items.map((request) => (
                <Item key={`${request.run} ${request.id}`} request={request} onClose={close} />
              ))}
              {next && <p className={styles.about}>There are more; they come when some of these are answered.</p>}
            </>
          )}
        </Loaded>
      </div>
    </Page>
  );
}

function Item({ request, onClose }: { request: RequestAnswer; onClose: (request: RequestAnswer) => void }) {
  const place = `/api/runs${pathOf(request.run)}/answers${pathOf(request.id)}`;
  return (
    <div className={styles.request}>
      <RequestCard
        run={request.run}
        request={request}
        send={(value) => post(place, { value })}
        cancel={request.kind === "ui" ? () => del(place) : undefined}
        onAnswered={() => onClose(request)}
      />
      <p className={styles.about}>
        {request.agent} has waited for <Clock since={request.opened_at} /> ·{" "}
        <Link to={`/runs${pathOf(request.run)}`}>Open the run</Link>
      </p>
    </div>
  );
}

/** Says what was just done, where the focus goes: the card with the button is gone. */
function Done({ request, isVisible }: { request: RequestAnswer; isVisible: boolean }) {
  const line = useRef<HTMLParagraphElement>(null);
  useEffect(() => line.current?.focus(), []);
  return (
    <p ref={line} tabIndex={-1} role="status" className={styles.done}>
      Done: {splitPayload(request.payload).title || `a message to ${request.agent}`}
      {isVisible && (
        <>
          {" · "}
          <Link to={`/runs${pathOf(request.run)}`}>Open the run</Link>
        </>
      )}
    </p>
  );
}
