import { Plus } from "lucide-react";
import { useState } from "react";

import { Link } from "../../app/url";
import {
  Button, Code, Dialog, Loaded, Secret, Section, Table, TextField, Time, useActionDialog,
} from "../../parts";
import type { DeliveriesAnswer, NewWebhookAnswer, WebhookAnswer, WebhooksAnswer } from "../../protocol/api";
import { del, pathOf, post } from "../../transport/http";
import { useGet } from "../../transport/queries";

const PATH = "/api/webhooks";

/** Addresses that get the events of runs. */
export function OutgoingWebhooks() {
  const [secret, setSecret] = useState("");
  const [dialog, ask] = useActionDialog("webhooks");
  const [shown, setShown] = useState<WebhookAnswer | null>(null);
  const webhooks = useGet<WebhooksAnswer>(["webhooks"], PATH);

  const add = () =>
    ask({
      title: "Send events to an address",
      action: "Add",
      content: <WebhookFields />,
      perform: async (fields) => {
        const body = {
          url: fields.get("url"),
          kinds: wordsOf(fields, "kinds"),
          workflows: wordsOf(fields, "workflows"),
        };
        setSecret((await post<NewWebhookAnswer>(PATH, body)).secret);
      },
    });
  const remove = ({ id, url }: WebhookAnswer) =>
    ask({
      title: "Delete this webhook?",
      action: "Delete",
      content: `Nothing more is sent to ${url}, also not what it has not accepted yet.`,
      perform: () => del(PATH + pathOf(id)),
    });

  return (
    <Section
      title="Events sent to others"
      actions={
        <Button icon={<Plus />} onClick={add}>
          Add a webhook
        </Button>
      }
    >
      {secret && <Secret value={secret} what="The secret with which it is signed" />}
      <Loaded query={webhooks}>
        {({ items }) => (
          <Table
            label="Webhooks"
            items={items}
            keyOf={({ id }) => id}
            empty="No address gets the events of runs."
            columns={[
              { title: "Address", cell: ({ url }) => <Code>{url}</Code> },
              { title: "Events", cell: ({ kinds }) => kinds.join(", ") || "all" },
              { title: "Workflows", cell: ({ workflows }) => workflows.join(", ") || "all" },
              { title: "Since", cell: ({ created_at }) => <Time at={created_at} /> },
            ]}
            actions={(webhook) => ({
              Deliveries: () => setShown(webhook),
              Delete: () => remove(webhook),
            })}
          />
        )}
      </Loaded>
      {dialog}
      <Dialog open={shown !== null} title="Deliveries" onClose={() => setShown(null)}>
        {shown && <Deliveries webhook={shown} />}
      </Dialog>
    </Section>
  );
}

function WebhookFields() {
  return (
    <>
      <TextField label="Address" name="url" type="url" required placeholder="https://example.org/events" />
      <TextField label="Kinds of events" name="kinds" hint="Such as RunEnded, RequestOpened; empty for all." />
      <TextField label="Workflows" name="workflows" hint="Names with commas between them; empty for all." />
    </>
  );
}

function wordsOf(fields: FormData, name: string): string[] {
  return String(fields.get(name)).split(/[\s,]+/).filter(Boolean);
}

function Deliveries({ webhook }: { webhook: WebhookAnswer }) {
  const path = `${PATH}${pathOf(webhook.id)}/deliveries`;
  const log = useGet<DeliveriesAnswer>(["webhooks", "log", webhook.id], path);
  return (
    <Loaded query={log}>
      {({ items }) => (
        <Table
          label="Deliveries"
          items={items}
          keyOf={(_, index) => index}
          empty="Nothing was sent yet."
          columns={[
            { title: "Time", cell: ({ at }) => <Time at={at} /> },
            {
              title: "Event",
              cell: ({ run, seq }) => (
                <Link to={`/runs${pathOf(run)}?at=${seq}`}>
                  {seq} of …{run.slice(-6)}
                </Link>
              ),
            },
            { title: "Result", cell: ({ error }) => error || "accepted" },
          ]}
        />
      )}
    </Loaded>
  );
}
