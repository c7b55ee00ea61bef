"""Packages of a server as its tenants see them: where they are, their health, and their changes."""

from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from weft.findings import Finding, is_error
from weft.packages.archive.importing import Import
from weft.spec.workflow import WorkflowSpec


@dataclass(frozen=True, slots=True)
class PackagePlace:
    """A package as one tenant sees it: its folder, and whose it is."""

    name: str
    folder: Path
    #: The tenant, or SERVER for a package of all tenants.
    owner: str
    #: Whether it comes with Weft and is not in the workspace.
    is_shipped: bool = False


@dataclass(frozen=True, slots=True)
class Reviewed:
    """A package that was read and checked; the places of findings begin with its name."""

    spec: WorkflowSpec
    digest: str
    findings: tuple[Finding, ...]

    @property
    def errors(self) -> int:
        """The number of errors."""
        return sum(is_error(finding) for finding in self.findings)

    @property
    def warnings(self) -> int:
        """The number of warnings."""
        return len(self.findings) - self.errors


class Change(NamedTuple):
    """What was changed in a package, or would be."""

    done: Import
    written: bool
    #: The fixes that were applied, in words.
    fixed: tuple[str, ...] = ()


class Version(NamedTuple):
    """The content of a package at one time: the hash of its files, and its digest."""

    version: str
    digest: str


@dataclass(frozen=True, slots=True)
class PackageFile:
    """A file of a package; the digest is its sha256."""

    path: str
    size: int
    digest: str
