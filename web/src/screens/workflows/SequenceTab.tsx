import { useQuery } from "@tanstack/react-query";

import { Loaded } from "../../parts";
import type { DiagramAnswer } from "../../protocol/api";
import { Sequence } from "../../sequence/Sequence";
import { get, pathOf } from "../../transport/http";
import styles from "./workflows.module.css";

export function SequenceTab({ name }: { name: string }) {
  const diagram = useQuery({
    queryKey: ["workflow", name, "sequence"],
    queryFn: () => get<DiagramAnswer>(`/api/workflows${pathOf(name)}/diagram?kind=sequence`),
  });
  return (
    <div className={styles.tab}>
      <Loaded query={diagram} lines={8}>
        {({ text }) => <Sequence text={text} />}
      </Loaded>
    </div>
  );
}
