/** More comparisons than this take too long: then all is removed and added. */
const MOST = 1_000_000;

/** Return the lines of both texts with " ", "-" or "+" before each, with as few changes as possible. */
export function diffLines(old: readonly string[], now: readonly string[]): string[] {
  const removed = (line: string) => `- ${line}`;
  const added = (line: string) => `+ ${line}`;
  if (old.length * now.length > MOST) return [...old.map(removed), ...now.map(added)];
  // How many lines the rests of both have in common, by where they begin.
  const common = Array.from({ length: old.length + 1 }, () => new Uint32Array(now.length + 1));
  for (let i = old.length - 1; i >= 0; i--) {
    for (let j = now.length - 1; j >= 0; j--) {
      const [row, below] = [common[i]!, common[i + 1]!];
      row[j] = old[i] === now[j] ? below[j + 1]! + 1 : Math.max(below[j]!, row[j + 1]!);
    }
  }
  const lines: string[] = [];
  let [i, j] = [0, 0];
  while (i < old.length && j < now.length) {
    if (old[i] === now[j]) {
      lines.push(`  ${old[i]}`);
      i++;
      j++;
    } else if (common[i + 1]![j]! >= common[i]![j + 1]!) lines.push(removed(old[i++]!));
    else lines.push(added(now[j++]!));
  }
  return [...lines, ...old.slice(i).map(removed), ...now.slice(j).map(added)];
}
