"""`replay:FILE`: a model whose replies are written by hand, by agent, in a YAML or JSON file."""

from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import Final, TypeAlias, cast

from pydantic import ValidationError
from pydantic_core import to_json

from weft.check.problems import find_problems
from weft.engine.events import Event, ModelConsulted, ModelFailed, ModelReplied
from weft.errors import ModelError, UsageError
from weft.ids import suggestion
from weft.packages.layout import SUFFIXES
from weft.packages.text import documents
from weft.ports.model import ModelReply, ModelRequest
from weft.ports.scope import Scope
from weft.spec.part import Name, Part
from weft.spec.scenario import Reply
from weft.testing.models import Line, ScriptedModel

ReadRun: TypeAlias = Callable[[Scope, str], Awaitable[list[Event]]]

#: The most errors of a file in one message.
_MOST: Final = 5


class _Replies(Part):
    """Replies by agent, in the form of the `replies` of a scenario."""

    replies: dict[Name, tuple[Reply, ...]]


def is_replies_file(name: str) -> bool:
    """Tell whether the name after `replay:` is that of a file."""
    return name.lower().endswith(SUFFIXES)


def read_replies(file: Path) -> dict[str, tuple[Reply, ...]]:
    """Return the replies in a file; raises UsageError with every place that is wrong."""
    try:
        raw = file.read_bytes()
    except OSError as error:
        reason = error.strerror or str(error)
        hint = "write replay:FILE.yaml with the replies by agent, or replay:RUN"
        raise UsageError(f"the replies in {file} cannot be read: {reason}", hint=hint) from error
    document = documents.read(str(file), raw)
    errors = [f"{finding.place}: {finding.message}" for finding in document.findings]
    if document.ok:
        try:
            data = to_json({"replies": document.data})
            return _Replies.model_validate_json(data, strict=True).replies
        except ValidationError as error:
            errors += [
                f"{document.place(problem.path[1:])}: {problem.message}"
                for problem in find_problems(error, _Replies)
            ]
    hint = "write, for each agent, a list of replies: text, an object, a list of calls, or null"
    raise UsageError("; ".join(errors[:_MOST]), hint=hint)


class RepliesFile:
    """Gives each agent its next reply of a file; a resumed run continues where it was."""

    def __init__(self, file: Path, scope: Scope, read_run: ReadRun) -> None:
        self._file = file
        self._replies = read_replies(file)
        self._scope = scope
        self._read_run = read_run
        #: By run, how many replies each agent has had.
        self._used: dict[str, Counter[str]] = {}

    async def reply(
        self, request: ModelRequest, on_text: Callable[[str], None] | None = None
    ) -> ModelReply:
        """Return the next reply of an agent; raises ModelError if the file has none."""
        if request.run not in self._used:
            events = await self._read_run(self._scope, request.run)
            self._used[request.run] = Counter(_replied(events))
        used, agent = self._used[request.run], request.agent
        if agent not in self._replies:
            raise ModelError(
                f"{self._file} has no replies for {agent}, which is asked in turn {request.turn}; "
                f"{suggestion(agent, self._replies)}"
            )
        replies = self._replies[agent]
        number = used[agent] + 1
        if number > len(replies):
            raise ModelError(
                f"{self._file} has {len(replies)} replies for {agent}, and turn {request.turn}, "
                f"call {request.call} asks for number {number}"
            )
        used[agent] = number
        line = cast("Line", replies[number - 1])
        return await ScriptedModel([line], strict=False).reply(request, on_text)


def _replied(events: Iterable[Event]) -> list[str]:
    """Return the agent of each reply in a run, in order; tools ask in the turn of an agent."""
    agents: list[str] = []
    callers: dict[str, str] = {}
    for event in events:
        name = event.actor.removeprefix("agent:")
        match event.data:
            case ModelReplied(tool_requests=requests):
                agents.append(name)
                callers |= dict.fromkeys((request.id for request in requests), name)
            case ModelFailed():
                agents.append(name)
            case ModelConsulted(call=call) if call in callers:
                agents.append(callers[call])
            case _:
                pass
    return agents
