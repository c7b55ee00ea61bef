"""A package as read: its spec, its code, and where in its files everything stands."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from weft.findings import Finding, Place
from weft.findings import Path as SpecPath
from weft.packages.edit.rewrite import Rewrite
from weft.packages.layout import file_path
from weft.packages.text.documents import Document
from weft.spec.canonical import digest
from weft.spec.workflow import WorkflowSpec


@dataclass(frozen=True)
class DeclaredFile:
    """One declared file: as the author wrote it, and as it was understood."""

    name: str
    document: Document
    rewrite: Rewrite


@dataclass(frozen=True)
class Package:
    """A folder that was read. Where a file was refused, `spec` lacks what stands in it.

    With nothing but unknown keys a file is read without them, or as what they were meant to be.
    """

    folder: Path
    spec: WorkflowSpec
    files: Mapping[str, DeclaredFile]
    code: Mapping[str, bytes]
    findings: tuple[Finding, ...] = ()
    #: Fields of the spec whose file was refused.
    broken: frozenset[str] = field(default_factory=frozenset[str])

    @property
    def name(self) -> str:
        return self.spec.orchestrator.workflow_name

    @cached_property
    def digest(self) -> str:
        """The content of the package as one number: spec and code, however they are written."""
        return digest(self.spec, self.code)

    def locate(self, path: SpecPath, *, at_key: bool = False, offset: int | None = None) -> Place:
        """Return where in the author's files a value of the spec stands."""
        kind, inner = file_path(path, entry=at_key)
        declared = self.files.get(kind.stem)
        if declared is None:
            return Place(str(self.folder / f"{kind.stem}.json"))
        return declared.document.place(declared.rewrite.came_from(inner), key=at_key, offset=offset)
