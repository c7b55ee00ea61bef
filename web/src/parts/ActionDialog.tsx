import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useId, useState } from "react";
import type { FormEvent, ReactNode } from "react";

import styles from "./ActionDialog.module.css";
import { Button } from "./Button";
import { Dialog } from "./Dialog";
import { Problem } from "./States";

export interface ActionDialogProps {
  title: string;
  /** The button that does it, as a verb. */
  action: string;
  perform: (fields: FormData) => Promise<unknown>;
  /** Called when it is done, and when nothing is done. */
  onClose: () => void;
  /** Fields with names, or what will happen. */
  children: ReactNode;
}

/** Asks before an action, or for what it needs; stays open with the problem if it fails. */
export function ActionDialog({ title, action, perform, onClose, children }: ActionDialogProps) {
  const form = useId();
  const { mutate, isPending, error } = useMutation({ mutationFn: perform, onSuccess: onClose });

  function submit(event: FormEvent<HTMLFormElement>) {
    event.preventDefault();
    mutate(new FormData(event.currentTarget));
  }

  return (
    <Dialog
      open
      title={title}
      onClose={onClose}
      footer={
        <>
          <Button variant="bare" onClick={onClose}>
            Cancel
          </Button>
          <Button variant="main" type="submit" form={form} busy={isPending}>
            {action}
          </Button>
        </>
      }
    >
      <form id={form} onSubmit={submit} className={styles.form}>
        {typeof children === "string" ? <p>{children}</p> : children}
        {error !== null && <Problem error={error} />}
      </form>
    </Dialog>
  );
}

export interface Action extends Omit<ActionDialogProps, "onClose" | "children"> {
  /** Fields with names, or what will happen. */
  content: ReactNode;
}

/** A dialog for one action at a time, after which the lists with this key are read again. */
export function useActionDialog(key: string): [dialog: ReactNode, ask: (action: Action) => void] {
  const queries = useQueryClient();
  const [action, setAction] = useState<Action | null>(null);

  async function perform(fields: FormData) {
    await action?.perform(fields);
    await queries.invalidateQueries({ queryKey: [key] });
  }

  const dialog = action && (
    <ActionDialog {...action} perform={perform} onClose={() => setAction(null)}>
      {action.content}
    </ActionDialog>
  );
  return [dialog, setAction];
}
