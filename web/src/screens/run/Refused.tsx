import { useQueryClient } from "@tanstack/react-query";

import { Link } from "../../app/url";
import { Button, Problem } from "../../parts";
import type { RunView } from "../../run/view";
import { ApiProblem } from "../../transport/http";
import styles from "./index.module.css";
import { useRestart } from "./restart";

/** Why a run is not followed any more, or cannot be shown at all, and what to do. */
export function Refused({ view, problem }: { view: RunView; problem: ApiProblem }) {
  const queries = useQueryClient();
  const { error, button } = useRestart(view);
  // Asking again who is signed in shows the form to sign in.
  const signIn = () => void queries.invalidateQueries({ queryKey: ["me"] });
  const actions = (
    <>
      {problem.status === 401 && (
        <Button variant="main" onClick={signIn}>
          Sign in again
        </Button>
      )}
      {problem.status !== 401 && button}
      <Link to="/runs">Show all runs</Link>
    </>
  );
  return (
    <div className={styles.refused}>
      <Problem error={view.seq > 0 ? explained(problem, view) : problem} actions={actions} />
      {error !== null && <Problem error={error} />}
    </div>
  );
}

function explained(problem: ApiProblem, { seq }: RunView): ApiProblem {
  const { status, code, findings } = problem;
  const message =
    status === 404 ? "this run is no longer on the server, or no longer yours to see"
    : status === 401 ? "you are not signed in any more"
    : "the server does not let this page follow the run any more";
  const cause = [problem.message, ...problem.cause_];
  const hint = [...problem.hint, `What is shown here ends with event ${seq}.`];
  return new ApiProblem(status, { code, message, cause, hint, findings });
}
