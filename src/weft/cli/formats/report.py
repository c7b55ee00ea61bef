"""What one run of the checker came to."""

from dataclasses import dataclass
from pathlib import Path

from weft.findings import Finding, is_error


@dataclass(frozen=True, slots=True)
class AppliedFix:
    """One safe fix that was applied, and the file it changed."""

    file: str
    title: str


@dataclass(frozen=True, slots=True)
class Report:
    """The findings of a check and what it looked at."""

    findings: tuple[Finding, ...]
    files: int
    packages: int
    seconds: float
    fixed: tuple[AppliedFix, ...] = ()
    #: The folders of the packages.
    folders: tuple[Path, ...] = ()
    #: Whether errors kept the runs of a package from being explored.
    unexplored: bool = False

    @property
    def errors(self) -> int:
        """How many findings keep a workflow from running."""
        return sum(is_error(finding) for finding in self.findings)

    @property
    def warnings(self) -> int:
        """How many findings do not."""
        return len(self.findings) - self.errors

    @property
    def fixable(self) -> int:
        """How many findings have a safe fix."""
        return sum(finding.fix is not None for finding in self.findings)
