import { Button, Card } from "@kit/ui";

export default function DoctorAlert({ payload, onResponse }) {
  return (
    <Card title="A patient needs you">
      <p>{payload.symptoms}</p>
      <Button onClick={() => onResponse({ answer: "coming" })}>I am coming</Button>
      <Button onClick={() => onResponse({ answer: "ambulance" })}>Call an ambulance</Button>
    </Card>
  );
}
