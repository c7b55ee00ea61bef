import { useState } from "react";
import { Button, Card } from "@kit/ui";

export default function LeadApproval({ payload, onResponse }) {
  const [comment, setComment] = useState("");
  return (
    <Card title="A purchase request">
      <p>{payload.request_text}</p>
      <textarea value={comment} onChange={(event) => setComment(event.target.value)} />
      <Button onClick={() => onResponse({ decision: "approve", comment })}>Approve</Button>
      <Button onClick={() => onResponse({ decision: "reject", comment })}>Reject</Button>
    </Card>
  );
}
