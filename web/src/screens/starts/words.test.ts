import { expect, test } from "vitest";

import { curlOf, describeCron, describeStart } from "./words";

const start = { id: "W", path: null, paused: false, next_at: null, last: null, error: "" };

test.each([
  ["* * * * *", "Every minute"],
  ["*/15 * * * *", "Every 15 minutes"],
  ["5 * * * *", "Every hour at minute 5"],
  ["0 8 * * *", "Every day at 08:00"],
  ["30 17 * * 1-5", "Monday to Friday at 17:30"],
  ["0 9 * * 0", "Every Sunday at 09:00"],
  ["0 9 * * 7", "Every Sunday at 09:00"],
  ["15 6 1 * *", "On day 1 of every month at 06:15"],
  ["0 0 1 1 *", "0 0 1 1 *"],
  ["*/5 8-18 * * *", "*/5 8-18 * * *"],
])("%s is %s", (cron, words) => {
  expect(describeCron(cron)).toBe(words);
});

test("a schedule says its zone and what follows for missed times", () => {
  const trigger = { cron: "0 8 * * *", timezone: "Europe/Berlin", catch_up: "last" };
  expect(describeStart({ ...start, type: "schedule", trigger })).toBe(
    "Every day at 08:00 (Europe/Berlin); after missed times, one start makes up for the last of them",
  );
  expect(describeStart({ ...start, type: "schedule", trigger: { cron: "0 8 * * *" } })).toContain(
    "(UTC); times that are missed are passed over",
  );
});

test("the command signs with the secret that the webhook names", () => {
  const webhook = { ...start, type: "webhook" as const, path: "/hooks/local/orders", trigger: { secret_env: "ORDERS" } };
  const command = curlOf("http://localhost:8765", webhook);
  expect(command).toContain('-hmac "$ORDERS"');
  expect(command).toContain("'http://localhost:8765/hooks/local/orders'");
});
