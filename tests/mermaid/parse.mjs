// Reads a JSON list of diagrams and answers with a list: for each, why it does not parse, or the
// texts that Mermaid has read in it.

import DOMPurify from "dompurify";
import mermaid from "mermaid";

// What cleans texts before they are drawn needs a page; here nothing is drawn.
DOMPurify.addHook = () => {};
DOMPurify.sanitize = (text) => text;

let input = "";
for await (const chunk of process.stdin) input += chunk;

function texts(db) {
  if (db.getVertices) {
    const nodes = [...db.getVertices().values()];
    return [...nodes, ...db.getEdges()].map(({ text }) => text).filter(Boolean);
  }
  const actors = [...db.getActors().values()].map((actor) => actor.description);
  const said = db.getMessages().map(({ message }) => message);
  // What ends a block says nothing.
  return [db.getDiagramTitle(), ...actors, ...said].filter(Boolean);
}

const answers = [];
for (const diagram of JSON.parse(input)) {
  try {
    await mermaid.parse(diagram);
    const { db } = await mermaid.mermaidAPI.getDiagramFromText(diagram);
    answers.push({ texts: texts(db) });
  } catch (error) {
    answers.push({ error: String(error) });
  }
}
process.stdout.write(JSON.stringify(answers));
