"""What the agents of the second half reply with, as section 13 of the design has it.

Six outputs are the contents of a package file, in the wrapper keys of the design; the reader of
packages says what is wrong with them. The other three are files of code. Where a plan has several
workflows, the keys of an output describe the first one, and `more` has the same keys for each of
the others, by its name.
"""

from dataclasses import dataclass
from typing import Annotated, Final

from pydantic import Field, StringConstraints

from weft.spec.part import Name, Part, Text
from weft.spec.tools import HookType

#: Where a plan has several workflows: the outputs for all but the first, by workflow.
MORE: Final = "more"

_CODE: Final = r"(tools/([A-Z][A-Za-z0-9]*\.jsx|[a-z][a-z0-9_]*\.py)|hooks/[a-z][a-z0-9_]*\.py)"


class CodeFile(Part):
    """A file of code, and the libraries that must be installed for it."""

    filename: Annotated[str, StringConstraints(pattern=rf"^{_CODE}$")]
    content: Text
    requirements: tuple[Name, ...] = Field(default=(), alias="installRequirements")


class HookFile(CodeFile):
    """A file of hooks; `trigger` says when its function is called, unless `hooks` does."""

    trigger: HookType | None = None
    integration: Name | None = None


@dataclass(frozen=True, slots=True)
class OutputForm:
    """Where an output belongs: the package file whose contents it has, and the key of its files."""

    #: tools for tools.json and so on; "" for code.
    stem: str = ""
    #: The key of the list of files; "" if there is none.
    files: str = ""


FORMS: Final = {
    "ToolsManagerAgent": OutputForm("tools"),
    "ContextVariablesAgent": OutputForm("context_variables"),
    "HandoffsAgent": OutputForm("handoffs"),
    "StructuredOutputsAgent": OutputForm("structured_outputs"),
    "AgentsAgent": OutputForm("agents"),
    "OrchestratorAgent": OutputForm("orchestrator"),
    "UIFileGenerator": OutputForm(files="tools"),
    "AgentToolsFileGenerator": OutputForm(files="tools"),
    "HookAgent": OutputForm("hooks", "hook_files"),
}
