import type { PackageAnswer } from "../../protocol/api";
import type { RunStore } from "../../run/store";
import type { RunView } from "../../run/view";

/** What every pane of the dock gets: the run, and the event up to which it is shown. */
export interface PaneProps {
  store: RunStore;
  view: RunView;
  seq: number;
  isLive: boolean;
  /** Move the cursor to an event; null: to the end, which then is followed. */
  setAt: (seq: number | null) => void;
  /** For developers, once it is loaded. */
  pack: PackageAnswer | null;
}
