"""What is checked: a spec, the text of its code files, and what could not be read."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, wraps
from graphlib import CycleError, TopologicalSorter
from types import ModuleType
from typing import Final, Literal, TypeAlias, TypeVar, cast

from weft.engine.variables.trigger_index import TriggerKind, TriggerKinds
from weft.findings import Fix, Path, Place, Severity
from weft.ids import BUILT_IN_VARIABLES, TERMINATE, USER
from weft.spec.agents import Agent
from weft.spec.orchestrator import ParallelGroup
from weft.spec.part import Part
from weft.spec.tools import AgentTool, UiTool
from weft.spec.types import TypeExpr
from weft.spec.workflow import WorkflowSpec

Profile: TypeAlias = Literal["development", "production"]

_Answer = TypeVar("_Answer")
_Item = TypeVar("_Item")
_Source = TypeVar("_Source", bound=Part)


@dataclass(frozen=True, slots=True)
class Hit:
    """What a rule found: where (a path into the spec, or a place in code) and what is wrong."""

    path: Path
    message: str
    cause: tuple[str, ...] = ()
    hint: tuple[str, ...] = ()
    fix: Fix | None = None
    severity: Severity | None = None
    place: Place | None = None
    offset: int | None = None
    length: int | None = None
    at_key: bool = False


@dataclass(frozen=True)
class Subject:
    """A workflow to check. What several rules need is computed once, here."""

    spec: WorkflowSpec
    folder: str = ""
    code: Mapping[str, str] = field(default_factory=dict[str, str])
    profile: Profile = "development"
    #: Kinds of sources that do not exist where the package will run, besides those of production.
    suppressed: frozenset[str] = frozenset()
    #: The kinds of triggers that plug-ins add.
    kinds: TriggerKinds = field(default_factory=dict[str, TriggerKind])
    #: The files that variables are read from and that exist; None if this was not looked up.
    files: frozenset[str] | None = None
    #: Returns whether a module can be imported here; None if this was not looked up.
    is_installed: Callable[[str], bool] | None = None
    #: The model providers known where it is checked; None if that is not known.
    model_providers: frozenset[str] | None = None

    @cached_property
    def agents(self) -> dict[str, Agent]:
        return {agent.agent_name: agent for agent in self.spec.agents}

    @cached_property
    def targets(self) -> tuple[str, ...]:
        """The valid targets of a handoff: agents, groups, the user and the end."""
        return (*self.agents, *self.groups, USER, TERMINATE)

    @cached_property
    def groups(self) -> dict[str, ParallelGroup]:
        return {group.name: group for group in self.spec.orchestrator.parallel}

    @cached_property
    def tools(self) -> dict[str, AgentTool | UiTool]:
        """The tools by function name; triggers refer to them by it."""
        return {tool.function: tool for tool in self.spec.tools}

    @cached_property
    def models(self) -> dict[str, dict[str, TypeExpr]]:
        return {
            model.name: {name: entry.type for name, entry in model.fields.items()}
            for model in self.spec.models
        }

    @cached_property
    def variable_names(self) -> frozenset[str]:
        """The names of all variables, built-in ones included."""
        return BUILT_IN_VARIABLES | frozenset(self.spec.variables)

    def sources(self, kind: type[_Source]) -> Iterator[tuple[str, _Source]]:
        """Yield the variables whose source is of a kind, each with its source."""
        for name, variable in self.spec.variables.items():
            if isinstance(variable.source, kind):
                yield name, variable.source

    def once(self, question: Callable[["Subject"], _Answer]) -> _Answer:
        """Return `question(self)`, computed only the first time it is asked for."""
        if question not in self._answers:
            self._answers[question] = question(self)
        return cast("_Answer", self._answers[question])

    @cached_property
    def _answers(self) -> dict[object, object]:
        return {}


def listed_once(
    question: Callable[[Subject], Iterable[_Item]],
) -> Callable[[Subject], tuple[_Item, ...]]:

    def answer(subject: Subject) -> tuple[_Item, ...]:
        return tuple(question(subject))

    @wraps(question)
    def ask(subject: Subject) -> tuple[_Item, ...]:
        return subject.once(answer)

    return ask


def find_cycles(graph: Mapping[str, Iterable[str]]) -> Iterator[tuple[str, ...]]:
    """Yield cycles without common nodes. Breaking all of them leaves the graph without cycles.

    Names that are not keys of `graph` have no successors.
    """
    left = {node: [*dict.fromkeys(graph[node])] for node in graph}
    while True:
        known = {node: [name for name in after if name in left] for node, after in left.items()}
        try:
            TopologicalSorter(known).prepare()
        except CycleError as error:
            # Each node of the cycle leads to the one before it; the first is also the last.
            _, *cycle = reversed(error.args[1])
            begin = cycle.index(min(cycle, key=list(graph).index))
            yield (*cycle[begin:], *cycle[:begin])
            left = {node: after for node, after in left.items() if node not in cycle}
        else:
            return


Check: TypeAlias = Callable[[Subject], Iterable[Hit]]

#: How the agents of a workflow work together.
Mode: TypeAlias = Literal["conversation", "board", "flow"]
ALL_MODES: Final[frozenset[Mode]] = frozenset({"conversation", "board", "flow"})
CONVERSATION: Final[frozenset[Mode]] = frozenset({"conversation"})
BOARD: Final[frozenset[Mode]] = frozenset({"board"})
FLOW: Final[frozenset[Mode]] = frozenset({"flow"})


@dataclass(frozen=True, slots=True)
class CheckRule:
    """A rule of the checker, and the parts of the spec it reads.

    A rule is skipped when a file it reads from is broken: it would only repeat that error. Several
    rules may have one code. `affects_routes` is False for names that only code or an answer uses:
    an unknown one changes no route, so runs are explored all the same.
    """

    code: str
    reads: frozenset[str]
    check: Check
    modes: frozenset[Mode] = ALL_MODES
    affects_routes: bool = True


def rule(
    code: str, *reads: str, modes: frozenset[Mode] = ALL_MODES, affects_routes: bool = True
) -> Callable[[Check], CheckRule]:
    """Make a function a rule; `reads` names fields of WorkflowSpec, or "code"."""

    def bind(check: Check) -> CheckRule:
        return CheckRule(code, frozenset(reads), check, modes, affects_routes)

    return bind


def rules_of(*modules: ModuleType) -> tuple[CheckRule, ...]:
    """Collect the rules of modules: functions, and tables with one rule for each row."""
    values = [value for module in modules for value in vars(module).values()]
    found: dict[int, CheckRule] = {}
    for value in values:
        rows = cast("tuple[object, ...]", value) if isinstance(value, tuple) else (value,)
        found |= {id(row): row for row in rows if isinstance(row, CheckRule)}
    return tuple(found.values())
