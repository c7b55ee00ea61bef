import { useState } from "react";
import { Button, Card } from "@kit/ui";

export default function ClarificationRequest({ payload, onResponse, onCancel }) {
  const { question, options } = payload;
  const [choice, setChoice] = useState("");
  const [details, setDetails] = useState("");
  const answer = [choice, details.trim()].filter(Boolean).join(": ");

  const send = (event) => {
    event.preventDefault();
    onResponse({ answer, wants_person: false });
  };

  return (
    <Card title="Need more information">
      <form onSubmit={send}>
        <fieldset>
          <legend>{question}</legend>
          {options.map((option) => (
            <label key={option}>
              <input
                type="radio"
                name="choice"
                value={option}
                checked={choice === option}
                onChange={() => setChoice(option)}
              />
              {option}
            </label>
          ))}
        </fieldset>
        <label>
          In your own words
          <textarea
            rows={3}
            maxLength={2000}
            value={details}
            onChange={(event) => setDetails(event.target.value)}
          />
        </label>
        <Button type="submit" disabled={!answer}>
          Send
        </Button>
        <Button type="button" onClick={() => onResponse({ answer, wants_person: true })}>
          Speak to a person
        </Button>
        <Button type="button" onClick={onCancel}>
          Cancel
        </Button>
      </form>
    </Card>
  );
}
