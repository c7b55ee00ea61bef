"""A draft: one workflow as it is about to be written, and what was said about it on the way."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from weft.generator.shapes import ToolShape
from weft.spec.workflow import WorkflowSpec


@dataclass(frozen=True, slots=True)
class Replaced:
    """Something a model wrote that did not stay, whose part it was, and why."""

    agent: str
    what: str
    why: str


@dataclass(frozen=True, slots=True)
class Draft:
    """The spec of a workflow, and its code by path: `tools/x.py`, `tools/X.jsx`, `hooks/y.py`."""

    spec: WorkflowSpec
    shapes: tuple[ToolShape, ...]
    code: Mapping[str, str] = field(default_factory=dict[str, str])
    #: What `requirements.txt` of the package lists.
    requirements: tuple[str, ...] = ()
    #: What was made otherwise than the plan says, and why.
    notes: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The name of the workflow, and of its folder."""
        return self.spec.orchestrator.workflow_name
