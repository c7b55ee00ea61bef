import { Cost, Empty, Table, Tokens } from "../../parts";
import { addUsage, NOTHING_SPENT } from "../../run/view";
import type { Spending, Spent } from "../../run/view";
import type { PaneProps } from "./pane";
import styles from "./Panes.module.css";

/** What the model calls have cost, by agent and by model. */
export default function CostPane({ view, seq }: PaneProps) {
  const spent = view.spending.until(seq).filter(({ model }) => model);
  if (spent.length === 0) return <Empty title="No model was called up to here." />;
  return (
    <div className={styles.page}>
      <Costs title="Agent" spent={spent} nameOf={({ agent }) => agent || "the run itself"} />
      <Costs title="Model" spent={spent} nameOf={({ model }) => model} />
    </div>
  );
}

interface CostsProps {
  title: string;
  spent: readonly Spending[];
  nameOf: (spending: Spending) => string;
}

function Costs({ title, spent, nameOf }: CostsProps) {
  const sums = new Map<string, Spent>();
  for (const each of spent) {
    const name = nameOf(each);
    sums.set(name, addUsage(sums.get(name) ?? NOTHING_SPENT, each.usage));
  }
  return (
    <Table
      label={`Cost by ${title.toLowerCase()}`}
      items={[...sums]}
      keyOf={([name]) => name}
      columns={[
        { title, cell: ([name]) => name },
        { title: "Calls", cell: ([, sum]) => <span className="number">{sum.calls}</span> },
        { title: "In", cell: ([, sum]) => <Tokens input={sum.input} output={0} unmetered={sum.unmetered} /> },
        { title: "Out", cell: ([, sum]) => <Tokens input={0} output={sum.output} unmetered={sum.unmetered} /> },
        { title: "Cost", cell: ([, sum]) => <Cost usd={sum.cost} unpriced={sum.unpriced} /> },
      ]}
    />
  );
}
