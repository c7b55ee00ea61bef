/** One lifeline. */
export interface Participant {
  id: string;
  name: string;
  role: string;
  isPerson: boolean;
}

export interface Message {
  kind: "message";
  source: number;
  target: number;
  text: string;
  isDashed: boolean;
}

export interface Note {
  kind: "note";
  first: number;
  last: number;
  lines: string[];
}

/** Alternatives, what may happen, what happens at once or again and again. */
export interface Block {
  kind: "block";
  word: string;
  branches: { label: string; steps: Step[] }[];
}

export type Step = Message | Note | Block;

export interface Story {
  title: string;
  participants: Participant[];
  steps: Step[];
}

const PARTICIPANT = /^(actor|participant) (\w+) as (.*)$/;
const MESSAGE = /^(\w+?)(--?>>)(\w+): (.*)$/;
const NOTE = /^Note over (\w+)(?:,(\w+))?: (.*)$/;
const BLOCK = /^(alt|opt|par|loop) (.*)$/;
const BRANCH = /^(else|and) (.*)$/;

/**
 * Read a Mermaid sequence diagram as Weft writes it.
 *
 * Returns null for any other text: it is then shown as it is.
 */
export function parseSequence(text: string): Story | null {
  const [first, ...lines] = text.split("\n").map((line) => line.trim());
  if (first !== "sequenceDiagram") return null;
  const story: Story = { title: "", participants: [], steps: [] };
  const places = new Map<string, number>();
  const open: Block[] = [];
  let steps = story.steps;

  function place(id: string | undefined): number {
    return places.get(id ?? "") ?? -1;
  }

  for (const line of lines) {
    if (!line || line.startsWith("%%")) continue;
    const found = PARTICIPANT.exec(line);
    const message = MESSAGE.exec(line);
    const note = NOTE.exec(line);
    const block = BLOCK.exec(line);
    const branch = BRANCH.exec(line);
    if (line.startsWith("title ")) {
      story.title = decode(line.slice(6));
    } else if (found) {
      const [name = "", ...role] = labelLines(found[3]);
      places.set(found[2] ?? "", story.participants.length);
      story.participants.push({
        id: found[2] ?? "",
        name,
        role: role.join(" "),
        isPerson: found[1] === "actor",
      });
    } else if (note) {
      const first = place(note[1]);
      const last = note[2] ? place(note[2]) : first;
      if (first < 0 || last < 0) return null;
      steps.push({
        kind: "note",
        first: Math.min(first, last),
        last: Math.max(first, last),
        lines: labelLines(note[3]),
      });
    } else if (message) {
      const [source, target] = [place(message[1]), place(message[3])];
      if (source < 0 || target < 0) return null;
      const text = labelLines(message[4]).join(" ");
      steps.push({ kind: "message", source, target, text, isDashed: message[2] === "-->>" });
    } else if (block) {
      const opened: Block = { kind: "block", word: block[1] ?? "", branches: [] };
      steps.push(opened);
      open.push(opened);
      steps = addBranch(opened, block[2]);
    } else if (branch && open.length) {
      steps = addBranch(open[open.length - 1] as Block, branch[2]);
    } else if (line === "end" && open.length) {
      open.pop();
      steps = open.at(-1)?.branches.at(-1)?.steps ?? story.steps;
    } else {
      return null;
    }
  }
  return open.length || !story.participants.length ? null : story;
}

function addBranch(block: Block, label = ""): Step[] {
  const steps: Step[] = [];
  block.branches.push({ label: decode(label), steps });
  return steps;
}

function labelLines(text = ""): string[] {
  return text.split("<br/>").map(decode);
}

/** Mermaid writes characters that it would misread as their numbers. */
function decode(text: string): string {
  return text.replace(/#(\d{1,7});/g, (whole, code: string) =>
    Number(code) <= 0x10ffff ? String.fromCodePoint(Number(code)) : whole,
  );
}
