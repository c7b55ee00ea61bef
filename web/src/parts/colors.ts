const THREADS = 8;

/** The colour of the agent that is number `index` of its workflow. */
export function agentColor(index: number): string {
  return `var(--thread-${((index % THREADS) + THREADS) % THREADS})`;
}
