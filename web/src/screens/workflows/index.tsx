import { useRoute } from "../../app/url";
import { Workflow } from "./Workflow";
import { WorkflowList } from "./WorkflowList";

export default function WorkflowsScreen() {
  const name = useRoute().path[1];
  return name === undefined ? <WorkflowList /> : <Workflow key={name} name={name} />;
}
