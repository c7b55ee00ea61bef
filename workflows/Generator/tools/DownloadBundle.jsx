import { Button, Card } from "@kit/ui";

const LISTS = {
  skeleton: "This is a skeleton. Open:",
  left_out: "Not in the package",
  questions: "Differs from the plan",
  checked: "Checks",
};

export default function DownloadBundle({ payload, onResponse, onCancel }) {
  const { message, packages } = payload;
  const shown = Object.entries(LISTS).filter(([key]) => payload[key]?.length);

  return (
    <Card title="Your workflow bundle">
      <p>{message}</p>
      {shown.map(([key, title]) => (
        <section key={key}>
          <h4>{title}</h4>
          <ul>
            {payload[key].map((line) => (
              <li key={line}>{line}</li>
            ))}
          </ul>
        </section>
      ))}
      <ul>
        {Object.entries(packages).map(([name, files]) => (
          <li key={name}>
            {name}: {files} files
          </li>
        ))}
      </ul>
      <Button type="button" onClick={() => onResponse({ promotion: "approved" })}>
        Install
      </Button>
      <Button type="button" onClick={() => onResponse({ promotion: "declined" })}>
        Not now
      </Button>
      <Button type="button" onClick={onCancel}>
        Cancel
      </Button>
    </Card>
  );
}
