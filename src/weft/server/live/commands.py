"""The commands of sockets: what a client may send, and what each does."""

from abc import abstractmethod
from collections.abc import Mapping
from http import HTTPStatus
from typing import Annotated, Any, Final, Literal, TypeAlias, cast

from pydantic import Field, TypeAdapter, ValidationError
from pydantic_core import from_json

from weft.server import actions
from weft.server.actions import AnswerBody, CancelBody, ForkBody, MessageBody, StartBody
from weft.server.context import ServerContext
from weft.server.identity import Principal
from weft.server.parameters import PRINTABLE, Body
from weft.server.problems import causes_of, problem

_Name: TypeAlias = Annotated[str, Field(min_length=1, max_length=200, pattern=PRINTABLE)]
_Request: TypeAlias = Annotated[str, Field(min_length=1, max_length=300, pattern=PRINTABLE)]
_After: TypeAlias = Annotated[int, Field(ge=0, le=2**53)]

#: What the acknowledgement of a command says besides.
Acknowledged: TypeAlias = Mapping[str, object]


class Command(Body):
    """A command; sent again with its id within an hour, it finds what it did before."""

    v: Literal[1] = 1
    id: _Name


class Follow(Command):
    """Send everything of a run after an event; again, from there."""

    cmd: Literal["follow"]
    run: _Name
    after: _After = 0


class FollowBoard(Command):
    """Send the changes of a board."""

    cmd: Literal["follow_board"]
    workflow: _Name
    #: The `cursor` of the last change that came.
    after: Annotated[str, Field(max_length=800, pattern=PRINTABLE)] | None = None


class Unfollow(Command):
    """Send nothing more of a run or a board."""

    cmd: Literal["unfollow"]
    run: _Name | None = None
    workflow: _Name | None = None


class Pong(Body):
    """The answer to a ping."""

    v: Literal[1] = 1
    id: str = ""
    cmd: Literal["pong"]


class Action(Command):
    """A command that is not about its connection."""

    @abstractmethod
    async def perform(self, context: ServerContext, caller: Principal) -> Acknowledged:
        """Do what the command says; return what is acknowledged."""


class Message(Action, MessageBody):
    """Say something in a run that waits for it."""

    cmd: Literal["message"]
    run: _Name

    async def perform(self, context: ServerContext, caller: Principal) -> Acknowledged:
        await actions.send_message(context, caller, self.run, self.text, key=self.id)
        return {}


class Answer(Action, AnswerBody):
    """Answer an open request."""

    cmd: Literal["answer"]
    run: _Name
    request: _Request

    async def perform(self, context: ServerContext, caller: Principal) -> Acknowledged:
        await actions.answer_request(context, caller, self.run, self.request, self.value)
        return {}


class CancelRequest(Action):
    """Close an open request without an answer."""

    cmd: Literal["cancel_request"]
    run: _Name
    request: _Request

    async def perform(self, context: ServerContext, caller: Principal) -> Acknowledged:
        await actions.cancel_request(context, caller, self.run, self.request)
        return {}


class Cancel(Action, CancelBody):
    """Stop a run."""

    cmd: Literal["cancel"]
    run: _Name

    async def perform(self, context: ServerContext, caller: Principal) -> Acknowledged:
        await actions.cancel_run(context, caller, self.run, self.mode)
        return {}


class Retry(Action):
    """Continue a run that has stopped, or repeat the failed turn of one."""

    cmd: Literal["retry"]
    run: _Name

    async def perform(self, context: ServerContext, caller: Principal) -> Acknowledged:
        return {"run": await actions.retry_run(context, caller, self.run, key=self.id)}


class Fork(Action, ForkBody):
    """Repeat a turn of a run with other values, as a new run."""

    cmd: Literal["fork"]
    run: _Name

    async def perform(self, context: ServerContext, caller: Principal) -> Acknowledged:
        return {"run": await actions.fork_run(context, caller, self.run, self, key=self.id)}


class Start(Action, StartBody):
    """Start a run."""

    cmd: Literal["start"]

    async def perform(self, context: ServerContext, caller: Principal) -> Acknowledged:
        started = await actions.start_run(context, caller, self, key=self.id)
        return {"run": started.run, "seq": started.seq}


AnyCommand: TypeAlias = (
    Follow | FollowBoard | Unfollow | Message | Answer | CancelRequest | Cancel | Retry | Fork
    | Start | Pong
)  # fmt: skip

_COMMANDS: Final[TypeAdapter[AnyCommand]] = TypeAdapter(
    Annotated[AnyCommand, Field(discriminator="cmd")]
)


class InvalidCommand(Exception):
    """A message of a client that is no command: why, and the id that it names."""

    def __init__(
        self, status: HTTPStatus, message: str, causes: tuple[str, ...], id_: str | None = None
    ) -> None:
        super().__init__(message)
        self.problem = problem(status, message, cause=causes)
        self.id = id_


def parse_command(text: str) -> AnyCommand:
    """Return the command that a client sent; raises InvalidCommand."""
    try:
        data: object = from_json(text)
    except ValueError as error:
        message = "the message is not valid JSON"
        raise InvalidCommand(HTTPStatus.BAD_REQUEST, message, (str(error),)) from None
    try:
        return _COMMANDS.validate_python(data)
    except ValidationError as error:
        errors = [_without_command(each) for each in error.errors(include_url=False)]
        given = cast("Mapping[str, object]", data).get("id") if isinstance(data, dict) else None
        id_ = given if isinstance(given, str) else None
        message, status = "the command is not valid", HTTPStatus.UNPROCESSABLE_ENTITY
        raise InvalidCommand(status, message, causes_of(errors), id_) from None


def _without_command(error: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return an error with its place in the message, which pydantic puts below the command."""
    match error["type"]:
        case "union_tag_not_found":
            return {"loc": ("cmd",), "msg": "field required"}
        case "union_tag_invalid":
            known = error["ctx"]["expected_tags"].replace("'", "")
            text = f"there is no command {error['ctx']['tag']}; available: {known}"
            return {"loc": (), "msg": text}
        case _:
            return {**error, "loc": error["loc"][1:]}
