import { ChevronRight } from "lucide-react";
import { useState } from "react";

import { readSpec, rulesOf } from "../../graph/spec";
import { Bones, Button, Code, Empty, Facts, Value, valueText } from "../../parts";
import { causesOf, eventAt, historyAt, turnUnder, variablesAt } from "../../run/select";
import type { Change } from "../../run/view";
import { declaredAt } from "./pack";
import type { Declared } from "./pack";
import type { PaneProps } from "./pane";
import styles from "./Panes.module.css";
import { summaryOf } from "./summary";

interface Known extends Declared {
  change?: Change;
  /** It was set since the turn under the cursor began, when its value was `before`. */
  isNew: boolean;
  before: unknown;
}

/** The values of all variables after an event: those of this turn first. */
export function Variables(props: PaneProps) {
  const [onlyNew, setOnlyNew] = useState(false);
  if (!props.pack) return <Bones lines={8} />;
  const all = knownAt(props);
  if (all.length === 0) return <Empty title="This workflow has no variables." />;
  const isSet = ({ change }: Known) => change !== undefined && change.writer !== "start";
  const groups: [string, Known[]][] = [["Changed in this turn", all.filter(({ isNew }) => isNew)]];
  if (!onlyNew) {
    groups.push(["Set earlier", all.filter((each) => !each.isNew && isSet(each))]);
    groups.push(["At their start value", all.filter((each) => !each.isNew && !isSet(each))]);
  }
  return (
    <>
      {groups.map(([title, known], index) => (
        <section key={title} hidden={index > 0 && known.length === 0}>
          <h3>
            {title} <span>{known.length}</span>
          </h3>
          {known.length === 0 && <p className={styles.quiet}>Nothing was set in this turn.</p>}
          <div className={styles.list} hidden={known.length === 0}>
            {known.map((each) => (
              <Variable key={each.name} known={each} {...props} />
            ))}
          </div>
        </section>
      ))}
      <p>
        <Button variant="link" onClick={() => setOnlyNew(!onlyNew)}>
          {onlyNew ? "All variables" : "Only what this turn changed"}
        </Button>
      </p>
    </>
  );
}

function knownAt({ view, seq, pack }: PaneProps): Known[] {
  const turn = turnUnder(view, seq);
  const values = variablesAt(view, seq);
  const declared = declaredAt(pack, view, seq);
  const names = new Set(declared.map(({ name }) => name));
  const others = [...values.values()].filter(({ name }) => !names.has(name));
  const all: Declared[] = [...declared, ...others.map(({ name, value }) => ({ name, value, type: "" }))];
  return all.map((each) => {
    const change = values.get(each.name);
    const isNew = change !== undefined && turn !== undefined && change.seq >= turn.seq;
    const earlier = turn && historyAt(view, each.name, turn.seq - 1).at(-1);
    return { ...each, change, isNew, before: earlier ? earlier.value : each.start };
  });
}

function Variable({ known, ...props }: PaneProps & { known: Known }) {
  const { name, value, change, isNew, before, source } = known;
  const [isOpen, setOpen] = useState(false);
  return (
    <details className={isNew ? styles.changed : undefined} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        <ChevronRight aria-hidden="true" />
        <code>{name}</code>
        <span className={styles.value}>
          {isNew && (
            <>
              <del>{short(before)}</del> →{" "}
            </>
          )}
          {short(value)}
        </span>
        <small>{change ? `${change.writer}${change.turn ? ` · turn ${change.turn}` : ""}` : source}</small>
      </summary>
      {isOpen && <About known={known} {...props} />}
    </details>
  );
}

function short(value: unknown) {
  const text = valueText(value);
  return text.length > 120 ? `${text.slice(0, 120)}…` : <Value value={value} />;
}

function About({ known, view, seq, setAt, pack }: PaneProps & { known: Known }) {
  const { name, type, change, description, source, readers, value } = known;
  const history = historyAt(view, name, seq);
  const rules = pack ? rulesOf(readSpec(pack.spec)).filter(({ words }) => words.match(/\w+/g)?.includes(name)) : [];
  const causes = change ? [eventAt(view, change.event), ...causesOf(view, change.event)] : [];
  const link = (event: number) => (
    <Button variant="link" onClick={() => setAt(event)}>
      event {event}
    </Button>
  );
  return (
    <div className={styles.inside}>
      {description && <p>{description}</p>}
      <Facts
        values={{
          value: <Value value={value} max={600} />,
          type: type && <Code>{`${type} ${source ?? ""}`}</Code>,
          "read by": readers ? readers.join(", ") || "no agent" : null,
          decides: rules.length > 0 && rules.map((rule) => (
            <div key={rule.index}>
              <Code>{rule.words}</Code> {rule.source} → {rule.target}
            </div>
          )),
          "set because": causes.length > 0 && causes.map((event) => event && (
            <div key={event.seq}>
              {link(event.seq)} {summaryOf(event)}
            </div>
          )),
          history: history.length > 1 && history.map((each, index) => (
            <div key={index}>
              {link(each.event)} <Value value={each.value} max={80} /> by {each.writer}
            </div>
          )),
        }}
      />
    </div>
  );
}
