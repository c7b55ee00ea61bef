import type { FindingAnswer } from "../protocol/api";

export interface RuleFindings {
  code: string;
  severity: FindingAnswer["severity"];
  findings: FindingAnswer[];
}

/** Findings by their rule: those with errors first, otherwise by code. */
export function groupByRule(findings: readonly FindingAnswer[]): RuleFindings[] {
  const groups = new Map<string, RuleFindings>();
  for (const finding of findings) {
    const group = groups.get(finding.code);
    if (!group) {
      groups.set(finding.code, {
        code: finding.code,
        severity: finding.severity,
        findings: [finding],
      });
    } else {
      group.findings.push(finding);
      if (finding.severity === "error") group.severity = "error";
    }
  }
  return [...groups.values()].sort(
    (one, other) =>
      one.severity.localeCompare(other.severity) || one.code.localeCompare(other.code),
  );
}

/** The file of a finding inside its package: places begin with the name of the package. */
export function fileOf(finding: FindingAnswer, name: string): string {
  return finding.file.startsWith(`${name}/`) ? finding.file.slice(name.length + 1) : finding.file;
}

export function placeOf(finding: FindingAnswer, name: string): string {
  const place = [fileOf(finding, name), finding.line, finding.line && finding.column];
  return place.filter(Boolean).join(":");
}

/** What a safe fix does, in words. */
export function fixTitle(finding: FindingAnswer): string | null {
  const title = finding.fix?.title;
  return typeof title === "string" ? title : null;
}

export function countOf(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}
