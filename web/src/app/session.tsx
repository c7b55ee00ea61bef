import { useQuery, useQueryClient } from "@tanstack/react-query";
import { createContext, useContext, useState } from "react";
import type { FormEvent, ReactNode } from "react";

import { Button, Field, Problem } from "../parts";
import type { MeAnswer } from "../protocol/api";
import { claimTab, dropQueues } from "../run/queue";
import { ApiProblem, del, get, post } from "../transport/http";
import { Mark } from "./Mark";
import styles from "./session.module.css";

export type Role = "end_user" | "developer" | "operator" | "administrator";

const Me = createContext<MeAnswer | null>(null);

/** Who is signed in. Only for components inside `Session`. */
export function useMe(): MeAnswer {
  const me = useContext(Me);
  if (!me) throw new Error("useMe is called outside of Session");
  return me;
}

export function can(me: MeAnswer, role: Role): boolean {
  return me.roles.includes(role) || me.roles.includes("administrator");
}

/** Log out: the cookie is deleted, and what was read is forgotten. */
export function useLogOut(): () => Promise<void> {
  const queries = useQueryClient();
  return async () => {
    await del("/api/session");
    queries.clear();
    dropQueues();
    location.assign("/");
  };
}

/** Show the page to whoever is signed in, and a form to everybody else. */
export function Session({ children }: { children: ReactNode }) {
  const me = useQuery({ queryKey: ["me"], queryFn: readMe, refetchOnReconnect: "always" });
  const [first, setFirst] = useState<string>();
  if (me.error instanceof ApiProblem && me.error.status === 401) {
    return <SignIn onSignedIn={() => me.refetch()} />;
  }
  if (me.data) {
    if (first === undefined) setFirst(me.data.version);
    return (
      <Me value={me.data}>
        {first !== undefined && first !== me.data.version && <NewVersion />}
        {children}
      </Me>
    );
  }
  if (!me.error) return null;
  return (
    <main className={styles.alone}>
      <Problem error={me.error} onRetry={() => me.refetch()} />
    </main>
  );
}

/** The address that `weft serve` prints has a one-time token: it is exchanged for a cookie. */
async function readMe(): Promise<MeAnswer> {
  const token = new URLSearchParams(location.hash.slice(1)).get("token");
  if (token) {
    history.replaceState(null, "", location.pathname + location.search);
    // An old token does not matter to a browser that has a session.
    await post("/api/session", { token }).catch(ignoreRefusal);
  }
  const me = await get<MeAnswer>("/api/me");
  // Nothing of another user may stay in the page, and none of their messages may be sent.
  if (claimTab(`${me.app}/${me.user}`)) location.reload();
  return me;
}

function ignoreRefusal(error: unknown): void {
  if (!(error instanceof ApiProblem && error.status === 401)) throw error;
}

function SignIn({ onSignedIn }: { onSignedIn: () => void }) {
  const [key, setKey] = useState("");
  const [error, setError] = useState<unknown>(null);
  const [isBusy, setBusy] = useState(false);

  async function signIn(event: FormEvent) {
    event.preventDefault();
    setBusy(true);
    try {
      await post("/api/session", { token: key.trim() });
      onSignedIn();
    } catch (problem) {
      setError(problem);
      setBusy(false);
    }
  }

  return (
    <main className={styles.alone}>
      <Mark />
      <h1>Sign in to Weft</h1>
      <form onSubmit={signIn}>
        <Field
          label="API key"
          hint="On this machine, open the address that weft serve prints; weft keys create makes a key."
        >
          {(id, described) => (
            <input
              {...described}
              id={id}
              type="password"
              autoComplete="current-password"
              required
              value={key}
              onChange={(event) => setKey(event.target.value)}
            />
          )}
        </Field>
        {error !== null && <Problem error={error} />}
        <Button type="submit" variant="main" busy={isBusy}>
          Sign in
        </Button>
      </form>
    </main>
  );
}

function NewVersion() {
  return (
    <div role="status" className={styles.version}>
      The server has another version than this page.
      <Button onClick={() => location.reload()}>Reload the page</Button>
    </div>
  );
}
