"""NAME001 and NAME002: names that refer to nothing, and names that occur twice.

Both are declared as data. A reference says where in the spec a name is written and which kind of
thing it must name; one function checks them all. A row with `[]` looks at every item of a list, one
with `{}` at every entry of an object, whose key is then `key` in the words of the row.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, cast

from weft.check.answer_schema import Lost
from weft.check.board_parts import agents_of, known_types
from weft.check.declarations import serving
from weft.check.rules.code import functions_meant
from weft.check.spelling import did_you_mean, listed, respelling
from weft.check.subject import ALL_MODES, CONVERSATION, CheckRule, Hit, Subject, rule
from weft.findings import Fix, Json, Path, Remove, RenameKey, Severity
from weft.ids import OUTSIDE, nearest, slug
from weft.spec.part import Part
from weft.spec.variables import EntitySource


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of thing that can be named: its noun, the names there are, and the general hint.

    `reads` are the parts of the spec that declare such things. `accepts` tells of names that are
    right although they are not listed.
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
_TARGET: Final = 'use an agent of agents.json, a group, "user" or "terminate"'

KINDS: Final[Mapping[str, Kind]] = {
    "agent": Kind("agent", lambda it: it.agents, ("agents",), _AGENT),
    "target": Kind("agent", lambda it: it.targets, ("agents", "orchestrator"), _TARGET),
    "agent or group": Kind(
        "agent", lambda it: (*it.agents, *it.groups), ("agents", "orchestrator"), _AGENT
    ),
    "writer": Kind(
        "agent, tool or hook",
        _writers,
        ("agents", "tools", "lifecycle_tools", "hooks"),
        "use the name of an agent, or the function of a tool or hook",
        lambda it, name: name in it.once(functions_meant),
    ),
    "tool": Kind(
        "tool",
        lambda it: it.tools,
        ("tools", "mcp_servers"),
        "use the function of a tool in tools.json",
        _is_tool,
    ),
    "model": Kind(
        "model",
        lambda it: it.models,
        ("models",),
        "declare the model in structured_outputs.json",
    ),
    "variable": Kind(
        "variable",
        lambda it: it.variable_names,
        ("variables",),
        "declare the variable in context_variables.json",
    ),
    "entity": Kind(
        "entity variable",
        lambda it: [name for name, _ in it.sources(EntitySource)],
        ("variables",),
        'use a variable whose source is "entity"',
    ),
    "type": Kind(
        "artifact type",
        known_types,
        ("board",),
        'add the type to "artifacts" in board.json',
    ),
    "board agent": Kind(
        "agent of the board",
        lambda it: [agent.agent for _, agent in agents_of(it)],
        ("board",),
        "use the name of an agent in board.json",
        lambda _, name: name.startswith(OUTSIDE),
    ),
    "label": Kind(
        "label",
        lambda it: {label for _, agent in agents_of(it) for label in agent.labels},
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
    path: Path, what: str, lost: Lost, *, offset: int = 0, known: Iterable[str] | None = None
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

_TRIGGERS: Final = ("variables{}.source.triggers[]", "variables{}.source.transitions[].trigger")

_REFERENCES: Final[tuple[tuple[str, str, str], ...]] = (
    ("handoffs[].target_agent", "target", "{source_agent} hands off to"),
    ("handoffs[].source_agent", "agent", "the handoff to {target_agent} belongs to"),
    ("orchestrator.default_target", "target", "the default target is"),
    ("orchestrator.visual_agents[]", "agent or group", "visual_agents names"),
    ("orchestrator.parallel[].members[]", "agent", "the group {name} has"),
    ("orchestrator.parallel[].next", "target", "the group {name} hands off to"),
    ("tools[].agent", "agent", "the tool {function} belongs to"),
    ("mcp_servers[].agents[]", "agent", "the tool server {name} is for"),
    ("registry[].agent", "agent", "the registry binds"),
    ("registry[].model", "model", "{agent} is bound to"),
    ("variables{}.readers[]", "agent", "{key} may be read by"),
    ("variables{}.writers[]", "writer", "{key} may be written by"),
    ("variables{}.source.inputs[]", "variable", "{key} is computed from"),
    ("variables{}.source.persist_to", "entity", "{key} is persisted to"),
    *((f"{place}.source_agent", "agent", "a trigger of {key} waits for") for place in _TRIGGERS),
    *((f"{place}.target_agent", "target", "a trigger of {key} waits for") for place in _TRIGGERS),
    *((f"{place}.tool", "tool", "a trigger of {key} waits for") for place in _TRIGGERS),
    ("board.agents[].agent", "agent", "the board has"),
    ("board.artifacts[]", "model", "the board lists"),
    ("board.agents[].consumes[].types[]", "type", "{agent} consumes"),
    ("board.agents[].consumes[].from_agents[]", "board agent", "{agent} consumes artifacts of"),
    ("board.agents[].publishes[].type", "type", "{agent} publishes"),
)

#: What only a conversation has; BOARD001 and FLOW001 report it elsewhere.
_CONVERSATION: Final = ("handoffs", "orchestrator.default_target", "orchestrator.parallel")

#: What must occur once in its list: the noun, and the severity if it is not an error.
_UNIQUE: Final[tuple[tuple[str, str, Severity | None], ...]] = (
    ("agents[].agent_name", "agent", None),
    ("agents[].prompt_sections[].id", "prompt section id", "warning"),
    ("models[].name", "model", None),
    ("mcp_servers[].name", "tool server", None),
    ("orchestrator.parallel[].name", "group", None),
    ("orchestrator.parallel[].members[]", "member", None),
    ("orchestrator.budgets[].level", "budget level", None),
    ("registry[].agent", "agent in the registry", None),
    ("exposure{}[]", "variable", None),
    ("board.agents[].agent", "agent of the board", None),
    ("board.artifacts[]", "artifact type", None),
    ("board.agents[].publishes[].type", "published type", None),
)


def _root(pattern: str) -> str:
    return pattern.partition(".")[0].removesuffix("[]").removesuffix("{}")


def find(subject: Subject, pattern: str) -> Iterator[tuple[Path, Json, dict[str, Any]]]:
    """Yield the values at a pattern, each with its path and the fields of the objects around it."""
    steps = pattern.replace("[]", ".[]").replace("{}", ".{}").split(".")
    yield from _find(subject.spec, steps, (), {})


def _find(
    value: Any,  # noqa: ANN401 - a part of the spec, or what it holds
    steps: list[str],
    path: Path,
    around: dict[str, Any],
) -> Iterator[tuple[Path, Json, dict[str, Any]]]:
    if not steps:
        yield path, value, around
        return
    step, *rest = steps
    if step == "[]":
        for index, item in enumerate(value or ()):
            yield from _find(item, rest, (*path, index), around)
    elif step == "{}":
        for key, item in value.items():
            yield from _find(item, rest, (*path, key), {**around, "key": key})
    else:
        inner = getattr(value, step, None)
        if inner is not None:
            part = cast("Part", value)
            fields = {name: getattr(part, name) for name in type(part).model_fields}
            yield from _find(inner, rest, (*path, step), {**around, **fields})


def _unknown(pattern: str, kind: str, what: str, subject: Subject) -> Iterator[Hit]:
    return unknown_names(
        subject,
        (
            Reference(path, kind, name, what.format_map(around))
            for path, name, around in find(subject, pattern)
            if isinstance(name, str)
        ),
    )


#: One rule for each row, so that a row is passed over alone when a file it needs is broken.
UNKNOWN: Final = tuple(
    CheckRule(
        "NAME001",
        frozenset({_root(pattern), *KINDS[kind].reads}),
        partial(_unknown, pattern, kind, what),
        CONVERSATION if pattern.startswith(_CONVERSATION) else ALL_MODES,
    )
    for pattern, kind, what in _REFERENCES
)


def _duplicates(
    pattern: str, noun: str, severity: Severity | None, subject: Subject
) -> Iterator[Hit]:
    first: dict[tuple[Path, Json], Path] = {}
    for path, value, _ in find(subject, pattern):
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
    CheckRule("NAME002", frozenset({_root(row[0])}), partial(_duplicates, *row)) for row in _UNIQUE
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
    patterns = ("orchestrator.model", "agents[].model", "board.agents[].engines[].model")
    for path, name, _ in (found for pattern in patterns for found in find(subject, pattern)):
        provider = str(name).partition(":")[0]
        if known and provider not in known:
            meant = nearest(provider, known)
            corrected = str(name).replace(provider, meant or "", 1)
            yield Hit(
                path,
                f'the model "{name}" has unknown provider "{provider}"',
                hint=(f'did you mean "{corrected}"?',)
                if meant
                else (f"use PROVIDER:MODEL with one of {', '.join(sorted(known))}",),
            )
