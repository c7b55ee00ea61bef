"""What is checked: a spec, the text of its code files, and what could not be read."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, wraps
from graphlib import CycleError, TopologicalSorter
from types import ModuleType
from typing import Final, Literal, TypeAlias, TypeVar, cast

from weft.engine.variables.trigger_index import TriggerKind, TriggerKinds
from weft.errors import ExpressionError
from weft.findings import Fix, Path, Place, Severity
from weft.ids import BUILT_IN_VARIABLES, TERMINATE, USER
from weft.spec.agents import Agent
from weft.spec.condition_parser import parse_condition
from weft.spec.conditions import Condition
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
    """One workflow as the rules see it. What several rules need is worked out once, here."""

    spec: WorkflowSpec
    folder: str = ""
    code: Mapping[str, str] = field(default_factory=dict[str, str])
    profile: Profile = "development"
    #: The sources whose variables do not exist where it is to run, beside those production hides.
    suppressed: frozenset[str] = frozenset()
    #: The kinds of triggers that plug-ins add.
    kinds: TriggerKinds = field(default_factory=dict[str, TriggerKind])
    #: The files that variables are read from and that are there; None if nobody has looked.
    files: frozenset[str] | None = None
    #: Tells whether a module can be imported where it is checked; None if nobody has looked.
    is_installed: Callable[[str], bool] | None = None
    #: The model providers known where it is checked; None if that is not known.
    model_providers: frozenset[str] | None = None

    @cached_property
    def agents(self) -> dict[str, Agent]:
        return {agent.agent_name: agent for agent in self.spec.agents}

    @cached_property
    def targets(self) -> tuple[str, ...]:
        """Everyone that can be handed off to: agents, groups, the user and the end."""
        return (*self.agents, *self.groups, USER, TERMINATE)

    @cached_property
    def groups(self) -> dict[str, ParallelGroup]:
        return {it.name: it for it in self.spec.orchestrator.parallel}

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
        """Every variable there is, built-in ones included."""
        return BUILT_IN_VARIABLES | frozenset(self.spec.variables)

    @cached_property
    def conditions(self) -> dict[int, Condition]:
        """The parsed conditions of the handoffs, by index; those that do not parse are left out."""
        parsed: dict[int, Condition] = {}
        for index, handoff in enumerate(self.spec.handoffs):
            if handoff.condition is not None and handoff.condition_type == "expression":
                try:
                    parsed[index] = parse_condition(handoff.condition)
                except ExpressionError:
                    continue  # COND001 reports it
        return parsed

    def sources(self, kind: type[_Source]) -> Iterator[tuple[str, _Source]]:
        """Yield the variables whose source is of a kind, each with its source."""
        for name, variable in self.spec.variables.items():
            if isinstance(variable.source, kind):
                yield name, variable.source

    def once(self, question: Callable[["Subject"], _Answer]) -> _Answer:
        """Return `question(self)`, worked out only the first time: for what several rules need."""
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
    """Yield cycles that share no node, so many that breaking them leaves no other.

    Names without an entry lead nowhere.
    """
    left = {node: [*dict.fromkeys(graph[node])] for node in graph}
    while True:
        known = {node: [it for it in after if it in left] for node, after in left.items()}
        try:
            TopologicalSorter(known).prepare()
        except CycleError as error:
            # Each node of the cycle is what the next one leads to, and the first stands twice.
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


@dataclass(frozen=True, slots=True)
class CheckRule:
    """A rule of the checker, and the parts of the spec it reads.

    A rule is skipped when a file it reads from is broken: it would only repeat that error. Several
    rules may have one code.
    """

    code: str
    reads: frozenset[str]
    check: Check
    modes: frozenset[Mode] = ALL_MODES


def rule(
    code: str, *reads: str, modes: frozenset[Mode] = ALL_MODES
) -> Callable[[Check], CheckRule]:
    """Make a function a rule; `reads` names fields of WorkflowSpec, or "code"."""

    def bind(check: Check) -> CheckRule:
        return CheckRule(code, frozenset(reads), check, modes)

    return bind


def rules_of(*modules: ModuleType) -> tuple[CheckRule, ...]:
    """Collect the rules of modules: functions, and tables with one rule for each row."""
    values = [value for module in modules for value in vars(module).values()]
    found: dict[int, CheckRule] = {}
    for value in values:
        rows = cast("tuple[object, ...]", value) if isinstance(value, tuple) else (value,)
        found |= {id(row): row for row in rows if isinstance(row, CheckRule)}
    return tuple(found.values())
