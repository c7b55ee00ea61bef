"""NAME001 and NAME002: names that refer to nothing, and names that occur twice.

Both are declared as data. A reference says where in the spec a name is written and which kind of
thing it must name; one function checks them all. A row looks at the items of a list and at the keys
of an object too; one with `{}` only at these. Its words may use the fields of the part and of the
parts around it, and `key`, the name of the variable or agent that the spec holds them by.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, cast

from weft.check.answer_schema import UnknownKey
from weft.check.board_parts import board_of, known_types
from weft.check.declarations import serving
from weft.check.parts import Placed, parts_of, placed_parts, values_of
from weft.check.rules.code import functions_meant
from weft.check.spelling import did_you_mean, listed, respelling
from weft.check.subject import ALL_MODES, CONVERSATION, CheckRule, Hit, Subject, rule
from weft.check.texts import inserted
from weft.findings import Fix, Path, Remove, RenameKey, Severity
from weft.ids import OUTSIDE, nearest, slug
from weft.spec.agents import Agent, Handoff, PromptSection
from weft.spec.board import (
    TICK,
    Board,
    BoardAgent,
    Join,
    LabelledVisibility,
    ModelEngine,
    PrivateVisibility,
    Publication,
    Subscription,
)
from weft.spec.flow import AgentWork, VariableIngredient
from weft.spec.orchestrator import Budget, Orchestrator, ParallelGroup
from weft.spec.part import Part
from weft.spec.providers import FilterConfig, SummarisingProvider
from weft.spec.tools import AgentTool, McpServer, UiTool
from weft.spec.triggers import (
    HandoffTrigger,
    ToolCallTrigger,
    ToolFailedTrigger,
    ToolResponseTrigger,
    UiResponseTrigger,
)
from weft.spec.type_field import OutputBinding, OutputModel
from weft.spec.variables import (
    ComputedSource,
    DatabaseSource,
    EntitySource,
    ExternalSource,
    Variable,
)
from weft.spec.workflow import WorkflowSpec


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of thing that can be named: its noun, the names there are, and the general hint.

    `reads` are the parts of the spec that declare such things. `accepts` returns whether a
    name is valid although it is not listed.
    """

    noun: str
    names: Callable[[Subject], Collection[str]]
    reads: tuple[str, ...]
    hint: str
    accepts: Callable[[Subject, str], bool] = lambda _subject, _name: False
    severity: Severity | None = None


def _writers(subject: Subject) -> list[str]:
    spec = subject.spec
    functions = (*spec.tools, *spec.lifecycle_tools, *spec.hooks)
    return [*subject.agents, *dict.fromkeys(one.function for one in functions)]


def _is_tool(subject: Subject, name: str) -> bool:
    return name in subject.once(functions_meant) or bool(serving(subject, name))


_AGENT: Final = "use the name of an agent in agents.json"
_TYPE: Final = 'add the type to "artifacts" in board.json'
_TARGET: Final = 'use an agent of agents.json, a group, "user" or "terminate"'

KINDS: Final[Mapping[str, Kind]] = {
    "agent": Kind("agent", lambda subject: subject.agents, ("agents",), _AGENT),
    "target": Kind("agent", lambda subject: subject.targets, ("agents", "orchestrator"), _TARGET),
    "agent or group": Kind(
        "agent",
        lambda subject: (*subject.agents, *subject.groups),
        ("agents", "orchestrator"),
        _AGENT,
    ),
    "writer": Kind(
        "agent, tool or hook",
        _writers,
        ("agents", "tools", "lifecycle_tools", "hooks"),
        "use the name of an agent, or the function of a tool or hook",
        lambda subject, name: name in subject.once(functions_meant),
    ),
    "tool": Kind(
        "tool",
        lambda subject: subject.tools,
        ("tools", "mcp_servers"),
        "use the function of a tool in tools.json",
        _is_tool,
    ),
    "model": Kind(
        "model",
        lambda subject: subject.models,
        ("models",),
        "declare the model in structured_outputs.json",
    ),
    "variable": Kind(
        "variable",
        lambda subject: subject.variable_names,
        ("variables",),
        "declare the variable in context_variables.json",
    ),
    "entity": Kind(
        "entity variable",
        lambda subject: [name for name, _ in subject.sources(EntitySource)],
        ("variables",),
        'use a variable whose source is "entity"',
    ),
    "type": Kind("artifact type", known_types, ("board",), _TYPE),
    "type or tick": Kind(
        "artifact type", lambda subject: (*known_types(subject), TICK), ("board",), _TYPE
    ),
    "board agent": Kind(
        "agent of the board",
        lambda subject: [agent.agent for agent in board_of(subject).agents],
        ("board",),
        "use the name of an agent in board.json",
        lambda _, name: name.startswith(OUTSIDE),
    ),
    "label": Kind(
        "label",
        lambda subject: {label for agent in board_of(subject).agents for label in agent.labels},
        ("board",),
        "give the label to an agent",
        severity="warning",
    ),
}


@dataclass(frozen=True, slots=True)
class Reference:
    """A name that must name something: where it is written, of which kind, and who uses it.

    `what` is the beginning of the message: "RouterAgent hands off to". With an `offset` the name
    is a part of a text. `otherwise` is a second hint.
    """

    path: Path
    kind: str
    name: str
    what: str
    offset: int | None = None
    otherwise: str = ""


def unknown_names(subject: Subject, references: Iterable[Reference]) -> Iterator[Hit]:
    """Report the references that name nothing."""
    for reference in references:
        kind = KINDS[reference.kind]
        names = kind.names(subject)
        if reference.name not in names and not kind.accepts(subject, reference.name):
            yield unknown_name(reference, kind.noun, names, kind.hint, kind.severity)


def unknown_name(
    reference: Reference,
    noun: str,
    names: Iterable[str],
    hint: str,
    severity: Severity | None = None,
) -> Hit:
    """Report one reference: with the name that was probably meant, or with a general hint."""
    known, path, name = tuple(names), reference.path, reference.name
    in_text = reference.offset is not None
    first = did_you_mean(name, known) or (hint,)
    return Hit(
        path,
        f'{reference.what} unknown {noun} "{name}"',
        hint=(*first, reference.otherwise) if reference.otherwise else first,
        fix=None if in_text else respelling(path, name, known),
        severity=severity,
        offset=reference.offset,
        length=len(name) if in_text else None,
    )


def unknown_field(
    path: Path, what: str, lost: UnknownKey, *, offset: int = 0, known: Iterable[str] | None = None
) -> Hit:
    """Report a field that neither a type nor the state has, at its place in the text."""
    fields = tuple(lost.known if known is None else known)
    general = f"the fields are {listed(fields)}" if fields else "there are no fields"
    return Hit(
        path,
        f'{what} unknown field "{lost.step}"',
        hint=did_you_mean(lost.step, lost.known) or (general,),
        offset=offset + lost.offset,
        length=len(lost.step),
    )


# -- rows: where names are written

_TRIGGER: Final = "a trigger of {key} waits for"
_PROVIDER: Final = "a provider of {BoardAgent.agent}"

#: The part of the spec, the kind of part in it, the field, what it names, and who names it.
_REFERENCES: Final[tuple[tuple[str, type[Part], str, str, str], ...]] = (
    ("handoffs", Handoff, "target_agent", "target", "{Handoff.source_agent} hands off to"),
    (
        "handoffs",
        Handoff,
        "source_agent",
        "agent",
        "the handoff to {Handoff.target_agent} belongs to",
    ),
    ("orchestrator", Orchestrator, "initial_agent", "agent or group", "the initial agent is"),
    ("orchestrator", Orchestrator, "default_target", "target", "the default target is"),
    ("orchestrator", Orchestrator, "visual_agents", "agent or group", "visual_agents names"),
    ("orchestrator", ParallelGroup, "members", "agent", "the group {ParallelGroup.name} has"),
    (
        "orchestrator",
        ParallelGroup,
        "next",
        "target",
        "the group {ParallelGroup.name} hands off to",
    ),
    ("tools", AgentTool, "agent", "agent", "the tool {AgentTool.function} belongs to"),
    ("tools", UiTool, "agent", "agent", "the tool {UiTool.function} belongs to"),
    ("mcp_servers", McpServer, "agents", "agent", "the tool server {McpServer.name} is for"),
    ("registry", OutputBinding, "agent", "agent", "the registry binds"),
    ("registry", OutputBinding, "model", "model", "{OutputBinding.agent} is bound to"),
    ("exposure", WorkflowSpec, "exposure", "variable", "{key} is shown"),
    ("variables", Variable, "readers", "agent", "{key} may be read by"),
    ("variables", Variable, "writers", "writer", "{key} may be written by"),
    ("variables", ComputedSource, "inputs", "variable", "{key} is computed from"),
    ("variables", ComputedSource, "persist_to", "entity", "{key} is persisted to"),
    ("variables", DatabaseSource, "search_by", "variable", "{key} is searched by"),
    ("variables", HandoffTrigger, "source_agent", "agent", _TRIGGER),
    ("variables", HandoffTrigger, "target_agent", "target", _TRIGGER),
    ("variables", UiResponseTrigger, "tool", "tool", _TRIGGER),
    ("variables", ToolCallTrigger, "tool", "tool", _TRIGGER),
    ("variables", ToolResponseTrigger, "tool", "tool", _TRIGGER),
    ("variables", ToolFailedTrigger, "tool", "tool", _TRIGGER),
    ("board", BoardAgent, "agent", "agent", "the board has"),
    ("board", Board, "artifacts", "model", "the board lists"),
    ("board", Subscription, "types", "type", "{BoardAgent.agent} consumes"),
    (
        "board",
        Subscription,
        "from_agents",
        "board agent",
        "{BoardAgent.agent} consumes artifacts of",
    ),
    ("board", Join, "by{}", "type", "a join of {BoardAgent.agent} has a key for"),
    ("board", Publication, "type", "type", "{BoardAgent.agent} publishes"),
    ("board", PrivateVisibility, "agents", "board agent", "an artifact is private to"),
    ("board", LabelledVisibility, "labels", "label", "no agent sees the artifact:"),
    ("board", FilterConfig, "types", "type or tick", f"{_PROVIDER} selects"),
    ("board", FilterConfig, "producers", "board agent", f"{_PROVIDER} selects artifacts of"),
    (
        "board",
        SummarisingProvider,
        "templates{}",
        "type or tick",
        f"{_PROVIDER} has a template for",
    ),
    ("flow", AgentWork, "agent", "agent", "the step {Step.name} is done by"),
    ("flow", VariableIngredient, "name", "variable", "the context of {Step.name} reads"),
)

#: What only a conversation has; BOARD001 and FLOW001 report it elsewhere.
_CONVERSATION: Final = (Handoff, ParallelGroup, "initial_agent", "default_target")

#: What must occur once in its list: the noun, and the severity if it is not an error.
_UNIQUE: Final[tuple[tuple[str, type[Part], str, str, Severity | None], ...]] = (
    ("agents", Agent, "agent_name", "agent", None),
    ("agents", PromptSection, "id", "prompt section id", "warning"),
    ("models", OutputModel, "name", "model", None),
    ("mcp_servers", McpServer, "name", "tool server", None),
    ("orchestrator", ParallelGroup, "name", "group", None),
    ("orchestrator", ParallelGroup, "members", "member", None),
    ("orchestrator", Budget, "level", "budget level", None),
    ("registry", OutputBinding, "agent", "agent in the registry", None),
    ("exposure", WorkflowSpec, "exposure", "variable", None),
    ("board", BoardAgent, "agent", "agent of the board", None),
    ("board", Board, "artifacts", "artifact type", None),
    ("board", Publication, "type", "published type", None),
)


def _values(
    subject: Subject, root: str, part: type[Part], field: str
) -> Iterator[tuple[Path, object, Placed[Part]]]:
    """Yield the values of a field in one part of the spec, each with its path and its holder."""
    name = field.removesuffix("{}")
    for placed in placed_parts(subject, part):
        if name == field or isinstance(getattr(placed.part, name), dict):
            for path, value in values_of(placed, name):
                if path[0] == root:
                    yield path, value, placed


def _unknown(
    root: str, part: type[Part], field: str, kind: str, what: str, subject: Subject
) -> Iterator[Hit]:
    named: dict[tuple[Path, str], Reference] = {}
    for path, name, placed in _values(subject, root, part, field):
        if isinstance(name, str) and name:
            said = placed.describe(what, key=path[1])
            named.setdefault((path[:-1], name), Reference(path, kind, name, said))
    return unknown_names(subject, named.values())


#: One rule for each row, so that a row is passed over alone when a file it needs is broken.
UNKNOWN: Final = tuple(
    CheckRule(
        "NAME001",
        frozenset({row[0], *KINDS[row[3]].reads}),
        partial(_unknown, *row),
        ALL_MODES if {row[1], row[2]}.isdisjoint(_CONVERSATION) else CONVERSATION,
    )
    for row in _REFERENCES
)


def _unknown_insertions(kinds: tuple[type[Part], ...], subject: Subject) -> Iterator[Hit]:
    """Report the variables that templates insert and that are not declared."""
    return unknown_names(
        subject,
        (
            Reference(
                mention.path,
                "variable",
                mention.name,
                f"{mention.what} inserts",
                mention.offset,
                f"or write {{{{{mention.name}}}}} for the text {{{mention.name}}}",
            )
            for mention in inserted(subject, *kinds)
            # The agent's own list is reported if it also has the unknown name.
            if mention.name not in subject.spec.exposure.get(mention.owner, ())
        ),
    )


INSERTIONS: Final = tuple(
    CheckRule("NAME001", frozenset({"variables", *reads}), partial(_unknown_insertions, kinds))
    for reads, kinds in (
        (("agents", "exposure"), (PromptSection,)),
        (("tools",), (UiTool,)),
        (("mcp_servers",), (McpServer,)),
        ((), (DatabaseSource, ExternalSource)),
    )
)


def named_variables(subject: Subject) -> Iterator[str]:
    """Yield the variables that declarations name by themselves, not in a text."""
    for root, part, field, kind, _ in _REFERENCES:
        if kind in ("variable", "entity"):
            yield from (str(name) for _, name, _ in _values(subject, root, part, field))


def _duplicates(
    root: str,
    part: type[Part],
    field: str,
    noun: str,
    severity: Severity | None,
    subject: Subject,
) -> Iterator[Hit]:
    first: dict[tuple[Path, object], Path] = {}
    for path, value, _ in _values(subject, root, part, field):
        name = value if isinstance(value, str) else getattr(value, "name", None)
        index = max(at for at, step in enumerate(path) if isinstance(step, int))
        item, scope = path[: index + 1], path[:index]
        known = first.setdefault((scope, name), item)
        if known != item:
            place = path if _is_written(subject, path, value) else item
            yield duplicate_name(subject, place, (known, item), noun, str(name), severity)


def _is_written(subject: Subject, path: Path, value: object) -> bool:
    """Return False for a field that holds its default, which a file need not contain."""
    holder = value_at(subject, path[:-1])
    return not isinstance(holder, Part) or type(holder).model_fields[str(path[-1])].default != value


def duplicate_name(
    subject: Subject,
    path: Path,
    items: tuple[Path, Path],
    noun: str,
    name: str,
    severity: Severity | None = None,
) -> Hit:
    """Report the second of two items with one name; of two equal items the second is removed."""
    first, second = items
    equal = value_at(subject, first) == value_at(subject, second)
    return Hit(
        path,
        f'duplicate {noun} "{name}"',
        cause=(f"number {cast('int', first[-1]) + 1} in the list is the first",),
        hint=("rename or remove one of the two",),
        fix=Fix(f'remove the second "{name}"', (Remove(second),)) if equal else None,
        severity=severity,
    )


def value_at(subject: Subject, path: Path) -> object:
    """Return the value at a path into the spec."""
    value: Any = subject.spec
    for step in path:
        value = getattr(value, str(step)) if isinstance(value, Part) else value[step]
    return value


DUPLICATES: Final = tuple(
    CheckRule("NAME002", frozenset({row[0]}), partial(_duplicates, *row)) for row in _UNIQUE
)


@rule("NAME001", "exposure", "agents")
def exposure_names_agents(subject: Subject) -> Iterator[Hit]:
    for name in subject.spec.exposure:
        if name not in subject.agents:
            same = [agent for agent in subject.agents if slug(agent) == slug(name)]
            free = len(same) == 1 and same[0] not in subject.spec.exposure
            rename = RenameKey(("exposure", name), same[0]) if free else None
            yield Hit(
                ("exposure", name),
                f'variables are exposed to unknown agent "{name}"',
                hint=did_you_mean(name, subject.agents) or (_AGENT,),
                fix=Fix(f'write "{same[0]}" for "{name}"', (rename,)) if rename else None,
                at_key=True,
            )


@rule("NAME001", "agents", "orchestrator", "board")
def providers_are_known(subject: Subject) -> Iterator[Hit]:
    """Check the provider of every model name: `openai` of `openai:gpt-5`."""
    known = subject.model_providers or frozenset()
    for path, part in parts_of(subject, Orchestrator, Agent, ModelEngine):
        provider = (part.model or "").partition(":")[0]
        if provider and known and provider not in known:
            meant = nearest(provider, known)
            corrected = str(part.model).replace(provider, meant or "", 1)
            yield Hit(
                (*path, "model"),
                f'the model "{part.model}" has unknown provider "{provider}"',
                hint=(f'did you mean "{corrected}"?',)
                if meant
                else (f"use PROVIDER:MODEL with one of {', '.join(sorted(known))}",),
            )
