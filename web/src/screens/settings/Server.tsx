import { RotateCw } from "lucide-react";

import { Button, Chip, Code, Loaded, Section, Table } from "../../parts";
import type { CheckAnswer, DoctorAnswer } from "../../protocol/api";
import { useGet } from "../../transport/queries";

const TONES = { ok: "good", warn: "wait", fail: "bad" } as const;

/** What `weft doctor` says of the server: its checks, and the settings in force. */
export function Server() {
  const doctor = useGet<DoctorAnswer>(["doctor"], "/api/doctor");
  const settings = doctor.data?.checks.filter(isSetting) ?? [];
  return (
    <>
      <Section
        title="Checks"
        actions={
          <Button icon={<RotateCw />} busy={doctor.isFetching} onClick={() => doctor.refetch()}>
            Check again
          </Button>
        }
      >
        <Loaded query={doctor} lines={8}>
          {({ checks }) => (
            <Table
              label="Checks"
              items={checks.filter((check) => !isSetting(check))}
              keyOf={({ subject }, index) => `${subject} ${index}`}
              columns={[
                { title: "State", cell: ({ state }) => <Chip tone={TONES[state]}>{state}</Chip> },
                { title: "Subject", cell: ({ subject }) => subject },
                { title: "Found", cell: ({ fact }) => fact },
                { title: "What to do", cell: ({ remedy }) => remedy && <Code>{remedy}</Code> },
              ]}
            />
          )}
        </Loaded>
      </Section>
      {settings.length > 0 && (
        <Section title="Settings in force">
          <Table
            label="Settings"
            items={settings.map(settingOf)}
            keyOf={({ name }) => name}
            columns={[
              { title: "Name", cell: ({ name }) => <Code>{name}</Code> },
              { title: "Value", cell: ({ value }) => value || "–" },
              { title: "From", cell: ({ origin }) => origin },
            ]}
          />
        </Section>
      )}
    </>
  );
}

function isSetting({ subject }: CheckAnswer): boolean {
  return /^[A-Z_]+$|^--/.test(subject);
}

/** A fact of a setting is "VALUE (ORIGIN)". */
function settingOf({ subject, fact }: CheckAnswer): { name: string; value: string; origin: string } {
  const [, value = fact, origin = ""] = /^(.*) \(([^()]*)\)$/s.exec(fact) ?? [];
  return { name: subject, value, origin };
}
