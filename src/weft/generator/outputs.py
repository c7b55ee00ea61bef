"""The outputs of the agents of the second half, made from drafts: the inverse of the assembly."""

from collections.abc import Callable, Sequence
from pathlib import PurePosixPath
from typing import Final, cast

from weft.errors import UsageError
from weft.findings import Json
from weft.generator.draft import Draft
from weft.generator.output_models import FORMS, MORE
from weft.packages.writer import file_data
from weft.spec.tools import UiTool


def output_of(agent: str, draft: Draft) -> dict[str, Json]:
    """Return what an agent of the second half replies so that the assembly gives this draft.

    Raises UsageError for an agent that makes no part of a package.
    """
    form = FORMS.get(agent)
    if form is None:
        if agent == "DownloadAgent":
            return {"agent_message": f"{draft.name} is ready for download."}
        raise UsageError(f"{agent} makes no part of a package")
    data: dict[str, Json] = {}
    if form.stem:
        data = cast("dict[str, Json]", file_data(draft.spec).get(form.stem, {}))
    if form.stem == "context_variables":
        data = {"ContextVariablesPlan": data["context_variables"]}
    if form.files:
        files = [_file(draft, path) for path in sorted(draft.code) if _IS_OF[agent](draft, path)]
        data = {form.files: files, **data}
    return data


def joined_output(agent: str, drafts: Sequence[Draft]) -> dict[str, Json]:
    """Return the output of an agent for all workflows of a plan."""
    first, *others = [output_of(agent, draft) for draft in drafts]
    if not others or agent not in FORMS:
        return first
    names = (draft.name for draft in drafts[1:])
    return {**first, MORE: dict(zip(names, others, strict=True))}


def _file(draft: Draft, path: str) -> dict[str, Json]:
    # Which file needs a library is not kept: the first file names all of them.
    needed = list(draft.requirements) if path == min(draft.code) else []
    content: dict[str, Json] = {
        "filename": path,
        "content": draft.code[path],
        "installRequirements": needed,
    }
    if not path.startswith("hooks/"):
        return content
    name = path.removeprefix("hooks/")
    hook = next((hook for hook in draft.spec.hooks if hook.file.endswith(name)), None)
    called = {"trigger": hook.hook_type, "integration": hook.integration} if hook else {}
    return {**content, **called}


def _is_ui(draft: Draft, path: str) -> bool:
    asking = {tool.file for tool in draft.spec.tools if isinstance(tool, UiTool)}
    return path.endswith(".jsx") or PurePosixPath(path).name in asking


#: Whether an agent writes a file of code.
_IS_OF: Final[dict[str, Callable[[Draft, str], bool]]] = {
    "UIFileGenerator": lambda draft, path: path.startswith("tools/") and _is_ui(draft, path),
    "AgentToolsFileGenerator": lambda draft, path: (
        path.startswith("tools/") and not _is_ui(draft, path)
    ),
    "HookAgent": lambda _, path: path.startswith("hooks/"),
}
