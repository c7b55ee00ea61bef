import { Maximize2 } from "lucide-react";
import { useRef } from "react";

import { setQuery, useRoute } from "../../app/url";
import { Button, Empty, Time } from "../../parts";
import { RunQuestion } from "../../requests/RunQuestion";
import { Surface } from "../../requests/Surface";
import { artifactsAt } from "./artifacts";
import type { PaneProps } from "./pane";
import styles from "./Panes.module.css";


/** What tools show or ask in a place of its own: the newest, or a version of it. */
export default function ArtifactPane(props: PaneProps) {
  const chosen = Number(useRoute().query.get("show"));
  const box = useRef<HTMLDivElement>(null);
  const all = artifactsAt(props.view, props.seq);
  const shown = all.find(({ item }) => item.seq === chosen) ?? all.at(-1);
  if (!shown) return <Empty title="Nothing is shown here up to this event." />;
  const { item } = shown;
  return (
    <div className={styles.page}>
      <div className={styles.head}>
        <select
          aria-label="Artifact"
          value={item.seq}
          onChange={(event) => setQuery({ show: event.target.value })}
        >
          {all.map((each, index) => (
            <option key={each.item.seq} value={each.item.seq}>
              {each.title}, version {all.slice(0, index + 1).filter(({ title }) => title === each.title).length}
            </option>
          ))}
        </select>
        <Time at={item.ts} />
        <Button
          variant="bare"
          icon={<Maximize2 />}
          aria-label="Fill the screen"
          onClick={() => void box.current?.requestFullscreen()}
        />
      </div>
      <div ref={box}>
        {item.kind === "request" ? (
          <RunQuestion key={item.seq} {...props} id={item.id} />
        ) : (
          <Surface key={item.seq} run={props.view.run} component={item.component} payload={item.payload} />
        )}
      </div>
    </div>
  );
}
