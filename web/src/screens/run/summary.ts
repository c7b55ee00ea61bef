import { valueText } from "../../parts";
import type { WireEvent } from "../../protocol/frames";

/** An event in one line. */
export function summaryOf(event: WireEvent): string {
  const text = wordsOf(event);
  return text.length > 160 ? `${text.slice(0, 160)}…` : text;
}

function wordsOf(event: WireEvent): string {
  switch (event.kind) {
    case "RunStarted":
      return `${event.data.workflow} was started`;
    case "TurnStarted":
      return `${event.data.step || event.data.agent} takes turn ${event.turn}`;
    case "ContextAssembled":
      return `${event.data.agent} is asked, call ${event.data.call}`;
    case "ModelReplied": {
      const asked = (event.data.tool_requests ?? []).map(({ tool }) => tool);
      return event.data.text || `asks for ${asked.join(", ")}`;
    }
    case "ToolCalled":
      return `${event.data.tool}${event.data.hook ? ` (${event.data.hook})` : ""} is called`;
    case "ToolReturned":
      return valueText(event.data.value);
    case "VariableSet":
      return `${event.data.name} = ${valueText(event.data.value)} by ${event.data.writer}`;
    case "RequestOpened": {
      const { kind, agent, tool } = event.data;
      return kind === "chat" ? `${agent} waits for a message` : `${tool ?? agent} asks a person`;
    }
    case "RequestAnswered":
      return `${event.data.user}: ${valueText(event.data.value)}`;
    case "HandedOff":
    case "Branched":
      return `${event.data.source} → ${event.data.target} (${event.data.why})`;
    case "ArtifactPublished":
    case "ArtifactArrived":
      return `${event.data.type} by ${event.data.by}`;
    case "RunEnded":
      return `${event.data.outcome} ${event.data.reason ?? ""}`;
    default:
      // What most others say is an error, a text or a name.
      return Object.values(event.data)
        .filter((value) => typeof value === "string")
        .join(" · ");
  }
}
