"""What a tool sees of the run that calls it: the variables, and who it works for."""

from collections.abc import Iterator, Mapping, MutableMapping
from threading import Lock
from typing import Final

from weft.context.values import values_of
from weft.engine.compiled import CompiledWorkflow
from weft.engine.conditions import same
from weft.engine.events import VariableSet
from weft.engine.state import State
from weft.engine.writes import may_read, write_error
from weft.errors import ToolError
from weft.findings import Json
from weft.runtime.json_values import own_copy, plain_json
from weft.runtime.secrets import masked

NO_SECRETS: Final[Mapping[str, Json]] = {}


class Context(MutableMapping[str, Json]):
    """The variables during one tool call, as a mapping, and which call of which run it is.

    Reads give what the agent may read, as it was when the call began, and what the call itself has
    set since. None is no value: such a variable is not contained, `get` gives the default for it.
    What is read is a copy. What is set is checked at once, and put down when the call is over. The
    tool may use it from several threads. Secrets can be read by name; they are in no list of all
    values, and what is set does not contain them.
    """

    def __init__(
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
    ) -> None:
        self.run: Final = state.run
        self.app: Final = state.app
        self.user: Final = state.user
        self.agent: Final = agent
        #: The same when the call is repeated after a crash: an effect can be recognised by it.
        self.key: Final = key
        #: What people have answered to the questions this call has asked, in order.
        self.answers: Final = answers
        self._turn = turn
        self._tool = tool
        self._compiled = compiled
        self._state = state
        self._secrets = {
            it: value for it, value in secrets.items() if may_read(compiled.variables, it, agent)
        }
        self._over = False
        self._lock = Lock()
        self.restart()

    def restart(self) -> None:
        """Begin anew: what was set so far was part of an attempt that failed."""
        self._values = values_of(self._state, self._turn)
        self._seen = {
            it: value
            for it, value in self._values.items()
            if may_read(self._compiled.variables, it, self.agent)
        }
        self._writes: list[VariableSet] = []

    def get(self, key: str, default: Json = None) -> Json:
        """Return a value, or the default where there is none."""
        value = self._secrets.get(key, self._seen.get(key))
        return default if value is None else own_copy(value)

    def set(self, key: str, value: Json) -> None:
        """Set a variable; raises ToolError if this call may not set it so."""
        try:
            plain = masked(plain_json(value), self._secrets)
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
        """Tell whether a variable can be read and has a value."""
        return self._secrets.get(key, self._seen.get(key)) is not None

    def setdefault(self, key: str, default: Json = None) -> Json:
        """Return a value; where there is none, set the default first."""
        if not self.contains(key):
            self.set(key, default)
        return self.get(key)

    def to_dict(self) -> dict[str, Json]:
        """Return all values that can be read."""
        return {name: own_copy(value) for name, value in self._with_value()}

    @property
    def data(self) -> "Context":
        """The variables as a mapping, for tools that look for one under this name."""
        return self

    def finish(self) -> tuple[VariableSet, ...]:
        """End the call: return what it has set, in order, and accept nothing more."""
        with self._lock:
            self._over = True
            return tuple(self._writes)

    def __getitem__(self, key: str) -> Json:
        if key not in self._seen:
            raise KeyError(f"{key} is no variable that {self.agent} may read")
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
        # Without values: what is printed ends in logs.
        return f"Context(run={self.run!r}, agent={self.agent!r}, tool={self._tool!r})"

    def _with_value(self) -> list[tuple[str, Json]]:
        with self._lock:
            return [pair for pair in self._seen.items() if pair[1] is not None]

    def _fault(self, name: str, value: Json) -> str | None:
        """Say why a write is refused. The right of the agent is also that of the tools it calls."""
        if self._over:
            return f"{name} cannot be set: the call of {self._tool} is over"
        return write_error(self._compiled, self._values, name, value, self._tool, self.agent)
