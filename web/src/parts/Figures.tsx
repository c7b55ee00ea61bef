export interface CostProps {
  usd: number | null | undefined;
  /** Calls whose price is not known: the cost is at least what is shown. */
  unpriced?: number;
}

export function Cost(props: CostProps) {
  return <span className="number">{formatCost(props)}</span>;
}

export function formatCost({ usd, unpriced = 0 }: CostProps): string {
  if (usd === null || usd === undefined) return unpriced ? "unknown" : "–";
  const digits = usd >= 1 || usd === 0 ? 2 : 4;
  return `${unpriced ? "≥ " : ""}$${usd.toFixed(digits)}`;
}

export interface TokensProps {
  input: number | null | undefined;
  output: number | null | undefined;
  /** Calls that did not say how many. */
  unmetered?: number;
}

export function Tokens({ input, output, unmetered = 0 }: TokensProps) {
  const title = `${input ?? "?"} in, ${output ?? "?"} out`;
  const isKnown = typeof input === "number" || typeof output === "number";
  return (
    <span className="number" title={title}>
      {isKnown ? `${unmetered ? "≥ " : ""}${formatTokens((input ?? 0) + (output ?? 0))}` : "–"}
    </span>
  );
}

export function formatTokens(count: number): string {
  if (count < 1000) return String(count);
  if (count < 999_950) return `${(count / 1000).toFixed(count < 9950 ? 1 : 0)}k`;
  return `${(count / 1_000_000).toFixed(1)}M`;
}
