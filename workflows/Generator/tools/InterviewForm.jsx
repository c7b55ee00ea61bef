import { useState } from "react";
import { Button, Card } from "@kit/ui";

const QUESTIONS = {
  goal: "What shall the workflow achieve?",
  started_by: "What starts it: a chat, a form, a schedule, a webhook, a change of data?",
  approver: "Who approves something? Leave it empty if no one does.",
  data: "Which data does it read or write?",
  integrations: "Which services does it use?",
  specialists: "Which specialists shall take part?",
  risks: "What may go wrong?",
};

export default function InterviewForm({ payload, onResponse, onCancel }) {
  const defaults = payload.defaults;
  const [answers, setAnswers] = useState({});

  const send = (event) => {
    event.preventDefault();
    onResponse(answers);
  };

  return (
    <Card title="About the workflow">
      <form onSubmit={send}>
        {Object.entries(QUESTIONS).map(([name, question]) => (
          <label key={name}>
            {question}
            <input
              placeholder={defaults[name]}
              value={answers[name] ?? ""}
              onChange={(event) => setAnswers({ ...answers, [name]: event.target.value })}
            />
          </label>
        ))}
        <Button type="submit">Send</Button>
      </form>
      <Button type="button" onClick={onCancel}>
        Cancel
      </Button>
    </Card>
  );
}
