"""A workflow: a package that was checked and linked, ready to run, shared by all its runs."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from pydantic_core import from_json, to_json

from weft.context.view import View, make_view
from weft.engine.book import Rulebook, write_rulebook
from weft.ports.tools import ToolLoader, Tools
from weft.spec.canonical import digest, plain
from weft.spec.workflow import WorkflowSpec


@dataclass(frozen=True, slots=True)
class Workflow:
    """What a run needs to know of its package; it never changes."""

    digest: str
    spec: WorkflowSpec
    book: Rulebook
    views: Mapping[str, View]
    models: Mapping[str, str | None]
    tools: Tools
    #: The package as it is kept for runs that outlive its files.
    content: bytes

    @property
    def name(self) -> str:
        """The name of the workflow."""
        return self.spec.orchestrator.workflow_name


def link(spec: WorkflowSpec, code: Mapping[str, bytes], loader: ToolLoader) -> Workflow:
    """Import the code of a package and put everything in its place.

    Raises LinkError naming everything that is missing.
    """
    name = digest(spec, code)
    functions = {
        tool.function: (str(PurePosixPath("tools") / tool.file), tool.function)
        for tool in spec.tools
    }
    tools = loader.load(name, code, functions)
    book = write_rulebook(spec)
    return Workflow(
        digest=name,
        spec=spec,
        book=book,
        views={
            agent.agent_name: make_view(
                spec,
                agent,
                tuple(tools.schema(it) for it in book.parts[agent.agent_name].tools),
            )
            for agent in spec.agents
        },
        models={it.agent_name: it.model or spec.orchestrator.model for it in spec.agents},
        tools=tools,
        content=pack(spec, code),
    )


def pack(spec: WorkflowSpec, code: Mapping[str, bytes]) -> bytes:
    """Return a package as one piece of JSON."""
    files = {path: raw.decode() for path, raw in sorted(code.items())}
    return to_json({"spec": plain(spec), "code": files})


def unpack(content: bytes) -> tuple[WorkflowSpec, dict[str, bytes]]:
    """Return the package that was packed."""
    data = from_json(content)
    spec = WorkflowSpec.model_validate_json(to_json(data["spec"]), strict=True)
    return spec, {path: text.encode() for path, text in data["code"].items()}
