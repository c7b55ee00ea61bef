import { can, useMe } from "../../app/session";
import { Page } from "../../parts";
import { OutgoingWebhooks } from "./OutgoingWebhooks";
import { Starts } from "./Starts";

/** What begins runs without a person, and who is told of the events of runs. */
export default function StartsScreen() {
  const me = useMe();
  return (
    <Page title="Starts">
      {can(me, "operator") && <Starts />}
      {can(me, "developer") && <OutgoingWebhooks />}
    </Page>
  );
}
