"""The packages that come with Weft: examples, and one template for every pattern."""

from pathlib import Path
from typing import Final

from weft.errors import UsageError
from weft.packages.folder import read_folder
from weft.packages.reader import read_package
from weft.packages.writer import file_texts
from weft.spec.patterns import PATTERNS, find_pattern

#: The packages a new workspace starts with: two conversations and a flow.
EXAMPLES: Final = ("HelloWorld", "CustomerSupportRouter", "OrderProcessing")

#: The examples of boards, and of flows.
BOARDS: Final = ("NewsDesk",)
FLOWS: Final = ("OrderProcessing",)

#: What every workspace has without a copy of its own; a copy in the workspace comes first.
EVERYWHERE: Final = ("Generator",)


def shipped_folder() -> Path:
    """Return the folder of shipped packages: inside an installed Weft, or beside its sources."""
    home = Path(__file__).parents[1]
    installed = home / "workflows"
    return installed if installed.is_dir() else home.parents[1] / "workflows"


def example_files(name: str) -> dict[str, bytes]:
    contents = read_folder(shipped_folder() / name)
    return {**contents.declared, **contents.code}


def template_files(pattern: str, name: str) -> dict[str, bytes]:
    """Return the files of a new package called `name` that follows a pattern."""
    found = find_pattern(pattern)
    if found is None:
        known = ", ".join(f"{it.id} {it.title}" for it in PATTERNS)
        raise UsageError(f'there is no pattern "{pattern}"', hint=f"choose one of: {known}")
    package = read_package(shipped_folder() / found.name)
    orchestrator = package.spec.orchestrator.model_copy(update={"workflow_name": name})
    spec = package.spec.model_copy(update={"orchestrator": orchestrator})
    texts = {file: text.encode() for file, text in file_texts(spec).items()}
    return {**texts, **package.code}
