// A server with real runs, and the addresses that show every screen and pane of the page.

import { startWorld } from "./browser/harness.mjs";

const QUESTION = {
  question: "Which of the two charges is it about?",
  options: ["The first one", "The second one", "Both"],
};
const STORY = {
  headline: "The harbour stays closed until Friday",
  text: "After the storm the harbour of Weft stays closed until Friday. Divers look at the pier first.",
};
const BRIEF =
  "Customers ask about outages, bills or their accounts in a chat. Each question goes to the right " +
  "specialist. If something is unclear, the first agent asks back.";
const ANSWERS = { specialists: "technical, billing, account", data: "none" };
const LEAD = { headline: "Storm at the harbour", source: "radio", contact: "Ada", urgency: 4 };

/** A package with findings, and one that begins every night. */
const FILES = {
  "workflows/Unfinished/orchestrator.json": JSON.stringify({ workflow_name: "Unfinished", initial_agent: "Writer" }),
  "workflows/Unfinished/agents.json": JSON.stringify({
    agents: [{ agent_name: "Writter", prompt_sections: [{ id: "role", content: "Write to {customer}." }] }],
  }),
  "workflows/Nightly/orchestrator.json": JSON.stringify({
    workflow_name: "Nightly",
    initial_agent: "Writer",
    startup_mode: "BackendOnly",
    trigger: { type: "schedule", cron: "0 3 * * *" },
  }),
  "workflows/Nightly/agents.json": JSON.stringify({
    agents: [{ agent_name: "Writer", prompt_sections: [{ id: "role", content: "Write what happened today." }] }],
  }),
};

/** Start a world in which there is something on every screen. */
export async function startScenes() {
  const world = await startWorld({ model: "scripted", files: FILES });
  try {
    world.model.decide = decide;
    return { world, scenes: await makeScenes(world) };
  } catch (error) {
    await world.close();
    throw error;
  }
}

function decide({ messages, response_format: format, tools = [] }) {
  const fields = JSON.stringify(format ?? "");
  if (fields.includes('"note"')) return JSON.stringify({ ...STORY, note: "Names in full, and one fact first." });
  if (fields.includes('"headline"')) return JSON.stringify(STORY);
  if (tools.some((tool) => tool.function.name === "request_clarification")) {
    return { calls: [{ tool: "request_clarification", arguments: QUESTION }] };
  }
  const isFlow = JSON.stringify(messages).includes("small shop");
  return isFlow ? "Your lamp is on its way and arrives on Friday." : "Hello Ada, what can I do for you?";
}

async function makeScenes(world) {
  const me = await world.keyOf();
  const start = async (workflow, rest) => {
    const { run } = await world.post("/api/runs", { workflow, ...rest }, me);
    await world.settled(run);
    return run;
  };
  const design = async (brief) => {
    const { run } = await world.post("/api/plans", { brief, model: "designer" }, me);
    await world.settled(run);
    return run;
  };
  const { run: recorded } = await world.post("/api/recordings/customer-support", undefined, me);
  await start("HelloWorld", { message: "Hello, I am Ada." });
  const flow = await start("OrderProcessing", { values: { order: "A-7", amount: 620 } });
  const asked = await start("CustomerSupportRouter", { message: "I was charged twice." });
  const asking = await design(`${BRIEF} Everybody is polite.`);
  const planned = await design(BRIEF);
  const questions = await world.get("/api/requests", me);
  const { id } = questions.items.find((each) => each.run === planned);
  await world.post(`/api/runs/${planned}/answers/${id}`, { value: ANSWERS }, me);
  await world.settled(planned);
  const path = "/api/boards/NewsDesk/artifacts";
  const { run: news } = await world.post(path, { type: "Lead", payload: LEAD }, me);
  await world.settled(news);
  const { items } = await world.get(`${path}?type=Story`);

  const run = `/runs/${recorded}`;
  const all = {
    home: "/",
    inbox: "/inbox",
    runs: "/runs",
    "run-chat": run,
    "run-context": `${run}?panel=context`,
    "run-prompt": `${run}?panel=context&show=prompt`,
    "run-graph": `${run}?panel=graph&at=52`,
    "run-timeline": `${run}?panel=timeline`,
    "run-cost": `${run}?panel=cost`,
    "run-question": `/runs/${asked}`,
    "run-flow": `/runs/${flow}?panel=graph`,
    "run-board": `/runs/${news}?panel=board`,
    workflows: "/workflows",
    workflow: "/workflows/CustomerSupportRouter",
    "workflow-graph": "/workflows/CustomerSupportRouter?tab=graph",
    "workflow-flow": "/workflows/OrderProcessing?tab=graph",
    "workflow-sequence": "/workflows/CustomerSupportRouter?tab=sequence",
    "workflow-files": "/workflows/CustomerSupportRouter?tab=files&file=agents.json",
    "workflow-findings": "/workflows/Unfinished?tab=findings",
    "workflow-versions": "/workflows/CustomerSupportRouter?tab=versions",
    design: "/design",
    "design-questions": `/design/${asking}`,
    "design-plan": `/design/${planned}`,
    board: "/board",
    "board-artifact": `/board/NewsDesk/${items[0].id}?why=editor`,
    "board-agents": "/board/NewsDesk?tab=agents",
    "board-graph": "/board/NewsDesk?tab=graph",
    "board-knowledge": "/board/NewsDesk?tab=knowledge",
    starts: "/starts",
    settings: "/settings",
    "settings-models": "/settings?tab=models",
    "settings-server": "/settings?tab=server",
    "settings-access": "/settings?tab=access",
  };
  const phone = { "phone-chat": run, "phone-question": `/runs/${asked}`, "phone-inbox": "/inbox" };
  return [
    ...Object.entries(all).map(([name, address]) => ({ name, address, phone: false })),
    ...Object.entries(phone).map(([name, address]) => ({ name, address, phone: true })),
  ];
}

/** Open a scene, and wait until nothing on it is loading any more. */
export async function openScene(world, { address, phone }) {
  const page = await world.open(address, { phone });
  await page.getByRole("heading", { level: 1 }).waitFor();
  await page.waitForFunction(
    () => document.querySelector("[aria-label=Loading], [aria-busy=true]") === null,
    undefined,
    { polling: 200 },
  );
  return page;
}
