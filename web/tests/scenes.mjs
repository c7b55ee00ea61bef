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

/** It shows a letter beside the conversation. */
const SHOW_LETTER = `
from weft import show_ui_tool


async def show_letter(title: str, text: str) -> str:
    """Show a letter."""
    await show_ui_tool("show_letter", {"title": title, "text": text})
    return "shown"
`;
const LETTER = `
import { Card, Notice } from "@kit/ui";

export default function Letter({ payload }) {
  return (
    <Card title={payload.title}>
      <p>{payload.text}</p>
      <Notice tone="good">Ready to be sent.</Notice>
    </Card>
  );
}
`;

/** A package with findings, one that begins every night, and one that shows a letter. */
const FILES = {
  "workflows/Unfinished/orchestrator.json": JSON.stringify({ workflow_name: "Unfinished", initial_agent: "Writer" }),
  "workflows/Unfinished/agents.json": JSON.stringify({
    agents: [{ agent_name: "Writter", prompt_sections: [{ id: "role", content: "Write to {customer}." }] }],
  }),
  "workflows/Letters/orchestrator.json": JSON.stringify({ workflow_name: "Letters", initial_agent: "Writer" }),
  "workflows/Letters/agents.json": JSON.stringify({
    agents: [
      {
        agent_name: "Writer",
        human_interaction: "context",
        prompt_sections: [{ id: "role", content: "Write letters to customers." }],
      },
    ],
  }),
  "workflows/Letters/handoffs.json": JSON.stringify({
    handoff_rules: [{ source_agent: "Writer", target_agent: "user" }],
  }),
  "workflows/Letters/tools.json": JSON.stringify({
    tools: [
      {
        tool_type: "UI_Tool",
        agent: "Writer",
        file: "show_letter.py",
        function: "show_letter",
        description: "Shows a letter.",
        ui: { component: "Letter", mode: "artifact" },
      },
    ],
  }),
  "workflows/Letters/tools/show_letter.py": SHOW_LETTER,
  "workflows/Letters/tools/Letter.jsx": LETTER,
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

const SHOWN = { title: "Your invoice of March", text: "Dear Ada, you were charged twice. We return 20 euros to you." };

function decide({ messages, response_format: format, tools = [] }) {
  const fields = JSON.stringify(format ?? "");
  if (fields.includes('"note"')) return JSON.stringify({ ...STORY, note: "Names in full, and one fact first." });
  if (fields.includes('"headline"')) return JSON.stringify(STORY);
  if (tools.some((tool) => tool.function.name === "request_clarification")) {
    return { calls: [{ tool: "request_clarification", arguments: QUESTION }] };
  }
  if (tools.some((tool) => tool.function.name === "show_letter") && messages.at(-1).role !== "tool") {
    return { calls: [{ tool: "show_letter", arguments: SHOWN }] };
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
  const answer = async (run) => {
    const { items } = await world.get("/api/requests", me);
    const { id } = items.find((each) => each.run === run);
    await world.post(`/api/runs/${run}/answers/${id}`, { value: ANSWERS }, me);
    await world.settled(run);
  };
  const { run: recorded } = await world.post("/api/recordings/customer-support", undefined, me);
  await start("HelloWorld", { message: "Hello, I am Ada." });
  const flow = await start("OrderProcessing", { values: { order: "A-7", amount: 620 } });
  const asked = await start("CustomerSupportRouter", { message: "I was charged twice." });
  const letter = await start("Letters", { message: "Write to Ada about March." });
  const asking = await design(`${BRIEF} Everybody is polite.`);
  const planned = await design(BRIEF);
  await answer(planned);
  const made = await design(`${BRIEF} Sundays are off.`);
  await answer(made);
  const { hash } = await world.get(`/api/plans/${made}`, me);
  await world.post(`/api/plans/${made}/approve`, { hash, skeleton: true }, me);
  await world.settled(made);
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
    "run-artifact": `/runs/${letter}?panel=artifact`,
    workflows: "/workflows",
    workflow: "/workflows/CustomerSupportRouter",
    "workflow-graph": "/workflows/CustomerSupportRouter?tab=graph",
    "workflow-flow": "/workflows/OrderProcessing?tab=graph",
    "workflow-sequence": "/workflows/CustomerSupportRouter?tab=sequence",
    "workflow-files": "/workflows/CustomerSupportRouter?tab=files&file=agents.json",
    "workflow-findings": "/workflows/Unfinished?tab=findings",
    "workflow-tests": "/workflows/CustomerSupportRouter?tab=tests",
    "workflow-versions": "/workflows/CustomerSupportRouter?tab=versions",
    design: "/design",
    "design-questions": `/design/${asking}`,
    "design-plan": `/design/${planned}`,
    "design-files": `/design/${made}?tab=files`,
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
    { name: "sign-in", address: "/", phone: false, isSignedOut: true },
    ...Object.entries(all).map(([name, address]) => ({ name, address, phone: false })),
    ...Object.entries(phone).map(([name, address]) => ({ name, address, phone: true })),
  ];
}

/** Open a scene, and wait until nothing on it is loading any more. */
export async function openScene(world, { address, phone, isSignedOut = false }) {
  const page = isSignedOut
    ? await world.openIn(await world.newContext(), address, [/401/])
    : await world.open(address, { phone });
  await page.getByRole("heading", { level: 1 }).waitFor();
  const panel = new URLSearchParams(address.split("?")[1]).get("panel");
  if (panel) await page.getByRole("tab", { name: new RegExp(panel, "i"), selected: true }).waitFor();
  await page.waitForFunction(
    () => document.querySelector("[aria-label=Loading], [aria-busy=true]") === null,
    undefined,
    { polling: 200 },
  );
  return page;
}
