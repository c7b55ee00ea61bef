import { setQuery, useRoute } from "../../app/url";
import { Segmented } from "../../parts";

type Parts = Record<string, string>;

/** The part of a pane that is shown: the first, or the one in the address. */
export function usePart(parts: Parts): string {
  const asked = useRoute().query.get("show") ?? "";
  return asked in parts ? asked : Object.keys(parts)[0]!;
}

export function PartChoice({ parts }: { parts: Parts }) {
  const options = Object.entries(parts).map(([value, label]) => ({ value, label }));
  return (
    <Segmented
      label="Part"
      value={usePart(parts)}
      options={options}
      onChange={(show) => setQuery({ show: show === options[0]?.value ? null : show })}
    />
  );
}
