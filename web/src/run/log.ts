/** What stands in a log: the event that brought it. Logs are in the order of these numbers. */
export interface Stamped {
  readonly seq: number;
}

/**
 * A list that only grows. A longer log shares its array with the shorter ones, so that adding is
 * cheap and older views stay as they are.
 */
export class Log<T extends Stamped> {
  readonly length: number;
  private readonly all: T[];

  constructor(all: T[] = [], length = all.length) {
    this.all = all;
    this.length = length;
  }

  added(entry: T): Log<T> {
    const all = this.all.length === this.length ? this.all : this.all.slice(0, this.length);
    all.push(entry);
    return new Log(all);
  }

  at(index: number): T | undefined {
    return index >= 0 && index < this.length ? this.all[index] : undefined;
  }

  /** Return how many entries the first `seq` events brought. */
  count(seq: number): number {
    let low = 0;
    let high = this.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.all[middle]!.seq <= seq) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** Return the last entry that the first `seq` events brought. */
  last(seq: number): T | undefined {
    return this.at(this.count(seq) - 1);
  }

  /** Return the entries that the first `seq` events brought. */
  until(seq: number): readonly T[] {
    return this.all.slice(0, this.count(seq));
  }

  /** Return the entries of the events from `first` to `last`. */
  between(first: number, last: number): readonly T[] {
    return this.all.slice(this.count(first - 1), this.count(last));
  }
}
