// `@kit/ui`: what components of packages are made of besides the elements of HTML.

import type { ComponentProps, ReactNode } from "react";

import { Button as PageButton } from "../../parts/Button";

/** The button that sends is the main one. */
export function Button(props: ComponentProps<typeof PageButton>) {
  return <PageButton variant={props.type === "button" ? "quiet" : "main"} {...props} />;
}

export function Card({ title, children }: { title?: ReactNode; children?: ReactNode }) {
  return (
    <section>
      {title && <h2>{title}</h2>}
      {children}
    </section>
  );
}

interface NoticeProps {
  tone?: "plain" | "good" | "bad" | "wait";
  children?: ReactNode;
}

export function Notice({ tone = "plain", children }: NoticeProps) {
  return (
    <div className="notice" data-tone={tone}>
      {children}
    </div>
  );
}

interface TableProps {
  /** What stands at the top of the columns, by the names of the fields. */
  columns: Record<string, string>;
  rows: Record<string, unknown>[];
}

export function Table({ columns, rows }: TableProps) {
  const fields = Object.entries(columns);
  return (
    <table>
      <thead>
        <tr>
          {fields.map(([field, head]) => (
            <th key={field}>{head}</th>
          ))}
        </tr>
      </thead>
      <tbody>
        {rows.map((row, index) => (
          <tr key={index}>
            {fields.map(([field]) => (
              <td key={field}>{String(row[field] ?? "")}</td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  );
}
