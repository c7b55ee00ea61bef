import { can, useLogOut, useMe } from "../../app/session";
import { setTheme, useTheme } from "../../app/theme";
import { setQuery, useRoute } from "../../app/url";
import { Button, Facts, Page, Section, Segmented, Tabs } from "../../parts";
import type { MeAnswer } from "../../protocol/api";
import { Access } from "./Access";
import { Models } from "./Models";
import { Server } from "./Server";
import { Words } from "./Words";
import styles from "./Settings.module.css";

const TABS = [
  { value: "you", label: "You" },
  { value: "models", label: "Models" },
  { value: "server", label: "Server" },
  { value: "access", label: "Keys and users" },
] as const;
type Tab = (typeof TABS)[number]["value"];

const THEMES = [
  { value: "system", label: "As the system" },
  { value: "light", label: "Light" },
  { value: "dark", label: "Dark" },
] as const;

/** Who is signed in, and what the server is set up with: each role sees what it may ask for. */
export default function SettingsScreen() {
  const me = useMe();
  const chosen = useRoute().query.get("tab");
  const isOffered: Record<Tab, boolean> = {
    you: true,
    models: can(me, "developer") || can(me, "operator"),
    server: can(me, "operator"),
    access: can(me, "administrator"),
  };
  const tabs = TABS.filter(({ value }) => isOffered[value]);
  const tab = tabs.find(({ value }) => value === chosen)?.value ?? "you";
  return (
    <Page title="Settings">
      <Tabs label="Settings" value={tab} tabs={tabs} onChange={(value) => setQuery({ tab: value })}>
        <div className={styles.panel}>
          {tab === "you" && <You me={me} />}
          {tab === "models" && <Models />}
          {tab === "server" && <Server />}
          {tab === "access" && <Access />}
        </div>
      </Tabs>
    </Page>
  );
}

function You({ me }: { me: MeAnswer }) {
  const theme = useTheme();
  const logOut = useLogOut();
  return (
    <>
      <Section title="Signed in as" actions={<Button onClick={() => void logOut()}>Log out</Button>}>
        <Facts
          values={{
            User: me.user,
            Tenant: me.app,
            Roles: <Words words={me.roles} />,
            Groups: me.groups.length > 0 && <Words words={me.groups} />,
            Labels: me.labels.length > 0 && <Words words={me.labels} />,
          }}
        />
      </Section>
      <Section title="Theme">
        <div>
          <Segmented label="Theme" value={theme} options={THEMES} onChange={setTheme} />
        </div>
      </Section>
      <Section title="Weft">
        <p>
          Version {me.version}, a {me.mode}. It sends nothing to its makers.{" "}
          <a href="/docs">Read the HTTP API</a>
        </p>
      </Section>
    </>
  );
}
