"""A draft: one workflow as it is about to be written, and what of a model's work is not in it."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from weft.spec.workflow import WorkflowSpec


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A piece of a model's work that is not in the package."""

    file: str
    piece: str
    reason: str

    def __str__(self) -> str:
        return f"{self.file}: {self.piece}: {self.reason}"


@dataclass(frozen=True, slots=True)
class Draft:
    """The spec of a workflow, with its code and its scenarios by path."""

    spec: WorkflowSpec
    #: `tools/x.py`, `tools/X.jsx`, `hooks/y.py`.
    code: Mapping[str, str] = field(default_factory=dict[str, str])
    #: `tests/x.yaml`.
    tests: Mapping[str, str] = field(default_factory=dict[str, str])
    #: The lines of `requirements.txt`.
    requirements: tuple[str, ...] = ()
    #: What differs from the plan, and why.
    notes: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The name of the workflow, and of its folder."""
        return self.spec.orchestrator.workflow_name
