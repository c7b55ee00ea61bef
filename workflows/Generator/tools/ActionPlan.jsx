import { useState } from "react";
import { Button, Card } from "@kit/ui";

const PARTS = ["pattern", "strategy", "blueprint", "agents"];

export default function ActionPlan({ payload, onResponse, onCancel }) {
  const { message, open, plan, diagram, legend, plan_hash } = payload;
  const [about, setAbout] = useState("strategy");
  const [comments, setComments] = useState("");

  const approve = () => onResponse({ plan_acceptance: "accepted", plan_hash });
  const adjust = (event) => {
    event.preventDefault();
    onResponse({ plan_acceptance: "adjustments_requested", plan_hash, about, comments });
  };

  return (
    <Card title="Action plan">
      {message && <p>{message}</p>}
      {open.length > 0 && (
        <section>
          <h4>This plan is a skeleton. Decide:</h4>
          <ul>
            {open.map((place) => (
              <li key={place}>{place}</li>
            ))}
          </ul>
        </section>
      )}
      <pre>{plan}</pre>
      <ul>
        {legend.map((line) => (
          <li key={line}>{line}</li>
        ))}
      </ul>
      <details>
        <summary>Diagram</summary>
        <pre className="mermaid">{diagram}</pre>
      </details>
      <p>Plan {plan_hash.slice(0, 12)}</p>
      <Button type="button" onClick={approve}>
        Approve
      </Button>
      <form onSubmit={adjust}>
        <label>
          Which part shall be different
          <select value={about} onChange={(event) => setAbout(event.target.value)}>
            {PARTS.map((part) => (
              <option key={part}>{part}</option>
            ))}
          </select>
        </label>
        <label>
          What shall be different
          <textarea
            rows={3}
            maxLength={2000}
            value={comments}
            onChange={(event) => setComments(event.target.value)}
          />
        </label>
        <Button type="submit" disabled={!comments.trim()}>
          Request changes
        </Button>
      </form>
      <Button type="button" onClick={onCancel}>
        Cancel
      </Button>
    </Card>
  );
}
