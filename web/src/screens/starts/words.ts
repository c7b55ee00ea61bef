import type { StartAnswer } from "../../protocol/api";

const WEEKDAYS = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

const MISSED: Record<string, string> = {
  none: "times that are missed are passed over",
  last: "after missed times, one start makes up for the last of them",
  all: "each missed time is made up for, at most 100",
};

/** What begins the runs of a workflow. */
export function describeStart({ type, trigger }: StartAnswer): string {
  const text = (name: string) => (trigger[name] == null ? "" : String(trigger[name]));
  if (type === "schedule") {
    const zone = text("timezone") || "UTC";
    return `${describeCron(text("cron"))} (${zone}); ${MISSED[text("catch_up") || "none"]}`;
  }
  if (type === "webhook") return `A signed request; its secret is ${text("secret_env") || "WEBHOOK_SECRET"}`;
  if (type === "form_submit") return `The form ${text("form")}`;
  return `A document in ${text("collection")} for which ${text("condition")}`;
}

/** A cron expression in words; one that is not of a common kind as it is. */
export function describeCron(cron: string): string {
  const [minute = "", hour = "", day = "", month = "", weekday = "", ...rest] = cron.trim().split(/\s+/);
  const isDaily = day === "*" && month === "*";
  const isEvery = isDaily && weekday === "*";
  if (rest.length > 0) return cron;
  if (isEvery && hour === "*") {
    const step = /^\*(?:\/(\d+))?$/.exec(minute);
    if (step) return step[1] === undefined || step[1] === "1" ? "Every minute" : `Every ${step[1]} minutes`;
    if (isNumber(minute)) return `Every hour at minute ${minute}`;
  }
  if (!isNumber(minute) || !isNumber(hour)) return cron;
  const time = `${hour.padStart(2, "0")}:${minute.padStart(2, "0")}`;
  if (isEvery) return `Every day at ${time}`;
  if (isDaily && weekday === "1-5") return `Monday to Friday at ${time}`;
  if (isDaily && isNumber(weekday)) return `Every ${WEEKDAYS[Number(weekday) % 7]} at ${time}`;
  if (isNumber(day) && month === "*" && weekday === "*") return `On day ${day} of every month at ${time}`;
  return cron;
}

/** A command that sends a signed request to a webhook, from any shell. */
export function curlOf(origin: string, { path, trigger }: StartAnswer): string {
  const secret = String(trigger.secret_env ?? "WEBHOOK_SECRET");
  return [
    `BODY='{"example": true}'`,
    `NOW=$(date +%s)`,
    `SIGNATURE=$(printf '%s.%s' "$NOW" "$BODY" | openssl dgst -sha256 -hmac "$${secret}" | sed 's/.* //')`,
    `curl -X POST '${origin}${path}' -H 'Content-Type: application/json' \\`,
    `  -H "Weft-Signature: t=$NOW,v1=$SIGNATURE" -d "$BODY"`,
  ].join("\n");
}

function isNumber(text: string): boolean {
  return /^\d+$/.test(text);
}
