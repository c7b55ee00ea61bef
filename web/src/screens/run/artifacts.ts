import { itemsAt } from "../../run/select";
import type { RequestItem, RunView, SurfaceItem } from "../../run/view";

/** What has its place beside the conversation; versions of the same thing share their title. */
export interface Artifact {
  item: SurfaceItem | RequestItem;
  title: string;
}

export function artifactsAt(view: RunView, seq: number): Artifact[] {
  return itemsAt(view, seq).flatMap((item): Artifact[] => {
    if (item.kind === "surface") return item.mode === "artifact" ? [{ item, title: item.tool }] : [];
    const request = item.kind === "request" ? view.requests.get(item.id) : undefined;
    if (item.kind !== "request" || request?.mode !== "artifact") return [];
    return [{ item, title: request.tool ?? request.agent }];
  });
}
