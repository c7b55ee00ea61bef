import { Button, Card } from "@kit/ui";

export default function DownloadBundle({ payload, onResponse, onCancel }) {
  const { message, packages, checked, replaced } = payload;

  return (
    <Card title="Your workflow bundle">
      <p>{message}</p>
      <ul>
        {Object.entries(packages).map(([name, files]) => (
          <li key={name}>
            {name}: {files} files
          </li>
        ))}
      </ul>
      {[...checked, ...replaced].map((line) => (
        <p key={line}>{line}</p>
      ))}
      <Button type="button" onClick={() => onResponse({ promotion: "approved" })}>
        Put it into the workspace
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
