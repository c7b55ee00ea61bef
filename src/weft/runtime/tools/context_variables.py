"""The context of a tool call: its variables, run, agent and user."""

from collections.abc import Iterator, Mapping, MutableMapping
from threading import Lock
from typing import Final, Protocol, TypeVar, cast, overload

from pydantic import BaseModel, ValidationError

from weft.context.segment import shown, values_of
from weft.engine.compile import refreshed
from weft.engine.compiled import CompiledWorkflow
from weft.engine.events import VariableSet
from weft.engine.events.codec import unfenced
from weft.engine.state import State
from weft.engine.variables.access import may_read, write_error
from weft.engine.variables.conditions import same
from weft.errors import ToolError
from weft.findings import Json
from weft.ports.model import OutputSchema
from weft.runtime.variables.json_values import masked, own_copy, plain_json
from weft.runtime.workflow import cache_seed
from weft.spec.types import print_type
from weft.spec.variables import is_call

T = TypeVar("T")

#: How often a model is asked again after an invalid reply.
MAX_ATTEMPTS: Final = 3

NO_SECRETS: Final[Mapping[str, Json]] = {}

ModelT = TypeVar("ModelT", bound=BaseModel)


#: The most characters of a value in a summary.
SHORT: Final = 80


def _shorten(value: Json) -> Json:
    """Return a value, or the beginning of it as text if it is long."""
    text = shown(value)
    return own_copy(value) if len(text) <= SHORT else f"{text[: SHORT - 3]}..."


class CallSurroundings(Protocol):
    """The actions of a call besides reading and setting variables."""

    async def ask_model(self, instruction: str, output: OutputSchema | None) -> str:
        """Ask the agent's model, and return its reply."""
        ...

    async def refreshed(self, name: str, values: Mapping[str, Json]) -> Json:
        """Read a variable from its source again and return its value.

        It is found by `values`.
        """
        ...

    def progress(self, share: float, text: str) -> None:
        """Report the progress of the call."""
        ...


class Context(MutableMapping[str, Json]):
    """The variables during one tool call, as a mapping, and which call of which run it is.

    Reads return what the agent may read, as it was when the call began, and what the call itself
    has set since, as copies. A variable that is None is not contained: `get` returns the default.
    Values that are set are validated at once, and recorded when the call ends. Several threads
    may use it. Secrets can be read by name only, and are masked in values that are set.
    """

    def __init__(  # noqa: PLR0913 - all by name
        self,
        compiled: CompiledWorkflow,
        state: State,
        *,
        turn: int,
        agent: str,
        tool: str,
        key: str,
        answers: tuple[Json, ...] = (),
        secrets: Mapping[str, Json] = NO_SECRETS,
        surroundings: CallSurroundings | None = None,
    ) -> None:
        self.run: Final = state.run
        self.app: Final = state.app
        self.user: Final = state.user
        self.agent: Final = agent
        #: Does not change when the call is repeated after a crash: an idempotency key.
        self.key: Final = key
        #: The answers of people to the questions of this call, in order.
        self.answers: Final = answers
        self._turn = turn
        self._tool = tool
        self._compiled = compiled
        self._state = state
        self._surroundings = surroundings
        #: Masked in values that are set: secrets, including those that a person typed meanwhile.
        self._hidden = secrets
        self._secrets = {name: value for name, value in secrets.items() if self._may_read(name)}
        self._over = False
        self._lock = Lock()
        self.restart()

    def restart(self) -> None:
        """Discard everything that was set: the attempt failed."""
        self._writes: list[VariableSet] = []
        self._look()

    def catch_up(self, state: State) -> None:
        """Read the current values after an answer; variables set by this call keep their values."""
        with self._lock:
            self._state = state
            self._look()

    def _look(self) -> None:
        self._values = values_of(self._state, self._turn)
        for written in self._writes:
            self._values[written.name] = written.value
        self._seen = {name: value for name, value in self._values.items() if self._may_read(name)}

    def _may_read(self, name: str) -> bool:
        # A call for the run itself has no agent and may read everything.
        return not self.agent or may_read(self._compiled.variables, name, self.agent)

    @property
    def cache_seed(self) -> int:
        """A number that stays the same for this run."""
        return cache_seed(self.app, self._state.workflow, self.run)

    @overload
    async def ask(self, instruction: str) -> str: ...
    @overload
    async def ask(self, instruction: str, *, output: type[ModelT]) -> ModelT: ...
    async def ask(self, instruction: str, *, output: type[ModelT] | None = None) -> ModelT | str:
        """Ask the agent's model, and return its reply as text or as a pydantic object.

        The reply is recorded; a repeated call gets the same reply.
        """
        if output is None:
            return await self._around().ask_model(instruction, None)
        schema = OutputSchema(output.__name__, output.model_json_schema())
        asked, fault = instruction, ""
        for _ in range(MAX_ATTEMPTS):
            text = await self._around().ask_model(asked, schema)
            try:
                return output.model_validate_json(unfenced(text))
            except ValidationError as error:
                fault = str(error)
                asked = f"{instruction}\n\nYour last reply was invalid: {fault}. Reply again."
        raise ToolError(f"the model gave no valid {output.__name__}: {fault}")

    async def refresh(self, name: str) -> Json:
        """Read a variable from its source again, or call its service, and return its value."""
        if not self._may_read(name) or name not in self._compiled.variables:
            raise ToolError(f"{self.agent} may not read the variable {name}, or it does not exist")
        variable = self._compiled.variables[name]
        if refreshed(variable.source) is None and not is_call(variable.source):
            raise ToolError(f"{name} is {variable.source.type} and is not read from outside")
        value = await self._around().refreshed(name, dict(self._values))
        if variable.secret:
            self._secrets[name] = value
            return value
        value = masked(value, self._hidden)
        with self._lock:
            if not same(self._values.get(name), value):
                self._writes.append(VariableSet(name, value, f"source:{variable.source.type}"))
            self._values[name] = self._seen[name] = value
        return own_copy(value)

    def progress(self, share: float, text: str = "") -> None:
        """Report the progress of the call to followers: a share from 0 to 1, and a text."""
        if not isinstance(share, int | float) or not 0 <= share <= 1:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ToolError(f"progress is a share from 0 to 1, not {share!r}")
        self._around().progress(float(share), str(text))

    def _around(self) -> CallSurroundings:
        if self._surroundings is None or self._over:
            raise ToolError("this works only during a tool call")
        return self._surroundings

    def get_str(self, key: str, default: str = "") -> str:
        """Return a text; raises ToolError for a value of another type."""
        return self._get_typed(key, default, str)

    def get_int(self, key: str, default: int = 0) -> int:
        """Return a whole number; raises ToolError for a value of another type."""
        return self._get_typed(key, default, int)

    def get_float(self, key: str, default: float = 0.0) -> float:
        """Return a number; raises ToolError for a value of another type."""
        return float(self._get_typed(key, default, int, float))

    def get_bool(self, key: str, default: bool = False) -> bool:  # noqa: FBT001, FBT002 - as dict.get
        """Return true or false; raises ToolError for a value of another type."""
        return self._get_typed(key, default, bool)

    def get_list(self, key: str, default: list[Json] | None = None) -> list[Json]:
        """Return a list; raises ToolError for a value of another type."""
        return self._get_typed(key, default or [], list)

    def get_dict(self, key: str, default: dict[str, Json] | None = None) -> dict[str, Json]:
        """Return an object; raises ToolError for a value of another type."""
        return self._get_typed(key, default or {}, dict)

    def _get_typed(self, key: str, default: T, *types: type) -> T:
        value = self.get(key, default)
        if not isinstance(value, types) or (isinstance(value, bool) and bool not in types):
            wanted = types[-1].__name__
            raise ToolError(f"{key} is {type(value).__name__}, not {wanted}")
        return cast("T", value)

    def get(self, key: str, default: Json = None) -> Json:
        """Return the value of a variable, or the default if it has none."""
        value = self._secrets.get(key, self._seen.get(key))
        return default if value is None else own_copy(value)

    def set(self, key: str, value: Json) -> None:
        """Set a variable; raises ToolError if the value is invalid or not allowed."""
        try:
            plain = masked(plain_json(value), self._hidden)
        except ValueError as error:
            raise ToolError(f"{key} cannot be set to {error}") from error
        with self._lock:
            fault = self._fault(key, plain)
            if fault is not None:
                raise ToolError(fault)
            if not same(self._values.get(key), plain):
                self._writes.append(VariableSet(key, plain, f"tool:{self._tool}"))
            self._values[key] = self._seen[key] = plain

    def remove(self, key: str) -> None:
        """Set a variable back to no value."""
        self.set(key, None)

    def contains(self, key: str) -> bool:
        """Return whether a variable can be read and has a value."""
        return self._secrets.get(key, self._seen.get(key)) is not None

    def setdefault(self, key: str, default: Json = None) -> Json:
        """Return the value of a variable; if it has none, set the default first."""
        if not self.contains(key):
            self.set(key, default)
        return self.get(key)

    def to_dict(self) -> dict[str, Json]:
        """Return all readable values."""
        return {name: own_copy(value) for name, value in self._with_value()}

    def summary(self) -> dict[str, Json]:
        """Return the readable variables with long values shortened, without secrets."""
        with self._lock:
            seen = dict(self._seen)
        digest: dict[str, Json] = {}
        for name, variable in self._compiled.variables.items():
            if name in seen and not variable.secret:
                about: dict[str, Json] = {
                    "value": _shorten(seen[name]),
                    "type": print_type(variable.type),
                    "source": variable.source.type,
                }
                if variable.description:
                    about["description"] = variable.description
                digest[name] = about
        return digest

    @property
    def data(self) -> "Context":
        """The variables as a mapping, for tools that expect this attribute."""
        return self

    def finish(self) -> tuple[VariableSet, ...]:
        """End the call: return the variables it has set, in order, and refuse further changes."""
        with self._lock:
            self._over = True
            return tuple(self._writes)

    def __getitem__(self, key: str) -> Json:
        if key not in self._seen:
            raise KeyError(f"{self.agent} may not read the variable {key}, or it does not exist")
        return own_copy(self._secrets.get(key, self._seen[key]))

    def __setitem__(self, key: str, value: Json) -> None:
        self.set(key, value)

    def __delitem__(self, key: str) -> None:
        self.remove(key)

    def __contains__(self, key: object) -> bool:
        return isinstance(key, str) and self.contains(key)

    def __iter__(self) -> Iterator[str]:
        return iter([name for name, _ in self._with_value()])

    def __len__(self) -> int:
        return len(self._with_value())

    def __repr__(self) -> str:
        # Without values, because it may be logged.
        return f"Context(run={self.run!r}, agent={self.agent!r}, tool={self._tool!r})"

    def _with_value(self) -> list[tuple[str, Json]]:
        with self._lock:
            return [pair for pair in self._seen.items() if pair[1] is not None]

    def _fault(self, name: str, value: Json) -> str | None:
        """Return why a write is refused; tools have the rights of the agent that calls them."""
        if self._over:
            return f"{name} cannot be set: the call of {self._tool} has ended"
        writers = (self._tool, self.agent) if self.agent else (self._tool,)
        return write_error(self._compiled, self._values, name, value, *writers)
