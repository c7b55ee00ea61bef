import { useRoute } from "../../app/url";
import { Design } from "./Design";
import { Designs } from "./Designs";

export default function DesignScreen() {
  const run = useRoute().path[1];
  return run === undefined ? <Designs /> : <Design key={run} run={run} />;
}
