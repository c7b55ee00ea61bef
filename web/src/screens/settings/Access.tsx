import { Plus } from "lucide-react";
import { useState } from "react";

import { useMe } from "../../app/session";
import {
  Button, Code, Field, Loaded, Secret, Section, Table, TextField, Time, useActionDialog,
} from "../../parts";
import type { AppsAnswer, KeyInfo, KeysAnswer, KeyTextAnswer, User, UsersAnswer } from "../../protocol/api";
import { del, pathOf, post } from "../../transport/http";
import { useGet } from "../../transport/queries";
import styles from "./Settings.module.css";
import { Words } from "./Words";

const ROLES = ["end_user", "developer", "operator", "administrator"];
const FIRST = "local";

/** Who may do what: the keys and users of a tenant, and the tenants. */
export function Access() {
  const me = useMe();
  const [app, setApp] = useState(me.app);
  const apps = useGet<AppsAnswer>(["apps"], "/api/apps?limit=200");
  const names = apps.data?.items.map((each) => each.app) ?? [me.app];
  return (
    <>
      {names.length > 1 && (
        <Field label="Tenant">
          {(id) => (
            <select id={id} className={styles.narrow} value={app} onChange={(event) => setApp(event.target.value)}>
              {names.map((name) => (
                <option key={name}>{name}</option>
              ))}
            </select>
          )}
        </Field>
      )}
      <Keys key={`keys ${app}`} app={app} />
      <Users key={`users ${app}`} app={app} />
      {me.app === FIRST && <Tenants names={names} onRemove={() => setApp(me.app)} />}
    </>
  );
}

function Keys({ app }: { app: string }) {
  const me = useMe();
  const [made, setMade] = useState("");
  const [dialog, ask] = useActionDialog("keys");
  const keys = useGet<KeysAnswer>(["keys", app], `/api/keys${ofApp(app)}`);

  async function make(path: string, body?: unknown) {
    setMade((await post<KeyTextAnswer>(path, body)).key);
  }

  const add = () =>
    ask({
      title: "Make a key",
      action: "Make the key",
      content: <PersonFields user={me.user} isKey />,
      perform: (fields) => make("/api/keys", { app, name: textOf(fields, "name"), ...personOf(fields) }),
    });
  const rotate = ({ id, name }: KeyInfo) =>
    ask({
      title: "Rotate this key?",
      action: "Rotate",
      content: `The key ${name || id} gets another secret; the old one remains valid for a day.`,
      perform: () => make(`/api/keys${pathOf(id)}/rotate${ofApp(app)}`),
    });
  const remove = ({ id, name, user }: KeyInfo) =>
    ask({
      title: "Delete this key?",
      action: "Delete",
      content: `The key ${name || id} of ${user} is refused from now on.`,
      perform: () => del(`/api/keys${pathOf(id)}${ofApp(app)}`),
    });

  return (
    <Section title="API keys" actions={<AddButton onClick={add}>Make a key</AddButton>}>
      {made && <Secret what="This is the key" value={made} />}
      <Loaded query={keys}>
        {({ items }) => (
          <Table
            label="API keys"
            items={items}
            keyOf={({ id }) => id}
            empty="There is no key. Programs, and people on other machines, need one."
            columns={[
              { title: "Key", cell: ({ id, name }) => <>{name} <Code>{id}</Code></> },
              { title: "User", cell: ({ user }) => user },
              { title: "Roles and groups", cell: ({ roles, groups }) => <Words words={[...roles, ...groups]} /> },
              { title: "Made", cell: ({ created_at }) => <Time at={created_at} /> },
              { title: "Last used", cell: ({ last_used_at }) => (last_used_at ? <Time at={last_used_at} /> : "never") },
            ]}
            actions={(key) => ({ Rotate: () => rotate(key), Delete: () => remove(key) })}
          />
        )}
      </Loaded>
      {dialog}
    </Section>
  );
}

function Users({ app }: { app: string }) {
  const [dialog, ask] = useActionDialog("users");
  const users = useGet<UsersAnswer>(["users", app], `/api/users${ofApp(app)}&limit=200`);

  const edit = (user?: User) =>
    ask({
      title: user ? `Change ${user.user}` : "Add a user",
      action: "Save",
      content: <PersonFields {...user} />,
      perform: (fields) => post("/api/users", { app, ...personOf(fields), labels: wordsOf(fields, "labels") }),
    });
  const remove = ({ user }: User) =>
    ask({
      title: "Delete this user?",
      action: "Delete",
      content: `${user} is deleted, with all keys and sessions of this user.`,
      perform: () => del(`/api/users${pathOf(user)}${ofApp(app)}`),
    });

  return (
    <Section title="Users" actions={<AddButton onClick={() => edit()}>Add a user</AddButton>}>
      <Loaded query={users}>
        {({ items, next }) => (
          <>
            <Table
              label="Users"
              items={items}
              keyOf={({ user }) => user}
              empty="Nobody has roles here besides those of keys and tokens."
              columns={[
                { title: "User", cell: ({ user }) => user },
                { title: "Roles", cell: ({ roles }) => <Words words={roles} /> },
                { title: "Groups", cell: ({ groups }) => <Words words={groups} /> },
                { title: "Labels", cell: ({ labels }) => <Words words={labels} /> },
              ]}
              actions={(user) => ({ Change: () => edit(user), Delete: () => remove(user) })}
            />
            {next && <p className={styles.note}>Only the first 200 users are listed.</p>}
          </>
        )}
      </Loaded>
      {dialog}
    </Section>
  );
}

function Tenants({ names, onRemove }: { names: readonly string[]; onRemove: () => void }) {
  const [dialog, ask] = useActionDialog("apps");
  const add = () =>
    ask({
      title: "Add a tenant",
      action: "Add",
      content: <TextField label="Name" name="app" required />,
      perform: (fields) => post("/api/apps", { app: textOf(fields, "app") }),
    });
  const remove = (name: string) =>
    ask({
      title: "Remove this tenant?",
      action: "Remove",
      content: `${name} is removed with its keys, users and sessions; its runs stay.`,
      perform: async () => {
        await del(`/api/apps${pathOf(name)}`);
        onRemove();
      },
    });
  return (
    <Section title="Tenants" actions={<AddButton onClick={add}>Add a tenant</AddButton>}>
      <Table
        label="Tenants"
        items={names}
        keyOf={(name) => name}
        columns={[{ title: "Name", cell: (name) => name }]}
        actions={(name) => (name === FIRST ? {} : { Remove: () => remove(name) })}
      />
      {dialog}
    </Section>
  );
}

interface PersonFieldsProps extends Partial<User> {
  isKey?: boolean;
}

function PersonFields({ user, roles = [], groups = [], labels = [], isKey = false }: PersonFieldsProps) {
  const others = roles.filter((role) => !ROLES.includes(role));
  return (
    <>
      <TextField label="User" name="user" required defaultValue={user} />
      {isKey && <TextField label="What it is for" name="name" />}
      <fieldset className={styles.roles}>
        <legend>Roles</legend>
        {ROLES.map((role) => (
          <label key={role}>
            <input type="checkbox" name="roles" value={role} defaultChecked={roles.includes(role)} />
            {role.replaceAll("_", " ")}
          </label>
        ))}
      </fieldset>
      <TextField
        label="Other roles"
        name="others"
        hint="Those that questions are addressed to, with commas between them."
        defaultValue={others.join(", ")}
      />
      <TextField label="Groups" name="groups" defaultValue={groups.join(", ")} />
      {!isKey && <TextField label="Labels" name="labels" defaultValue={labels.join(", ")} />}
    </>
  );
}

function personOf(fields: FormData): { user: string; roles: string[]; groups: string[] } {
  return {
    user: textOf(fields, "user"),
    roles: [...fields.getAll("roles").map(String), ...wordsOf(fields, "others")],
    groups: wordsOf(fields, "groups"),
  };
}

function textOf(fields: FormData, name: string): string {
  return String(fields.get(name)).trim();
}

function wordsOf(fields: FormData, name: string): string[] {
  return textOf(fields, name).split(/\s*,\s*/).filter(Boolean);
}

function ofApp(app: string): string {
  return `?app=${encodeURIComponent(app)}`;
}

function AddButton({ onClick, children }: { onClick: () => void; children: string }) {
  return (
    <Button icon={<Plus />} onClick={onClick}>
      {children}
    </Button>
  );
}
