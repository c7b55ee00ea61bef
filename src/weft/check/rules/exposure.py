"""Family EXPO: whether agents see the variables that their prompts speak of, and no others."""

import re
from collections.abc import Callable, Collection, Iterator
from typing import Final, cast

from weft.check.code.facts import code_of, path_in
from weft.check.declarations import set_in_turns
from weft.check.flow_parts import sources
from weft.check.parts import kinds_in, owned
from weft.check.rules.environment import computed_from, way_down
from weft.check.secrets import names_a_key
from weft.check.spelling import agent_meant, did_you_mean, variable_meant
from weft.check.subject import CONVERSATION, Hit, Subject, rule
from weft.check.texts import (
    inserted,
    places_of,
    quoted_words,
    routing_conditions,
    templates,
    words,
)
from weft.findings import AppendItem, Edit, Fix, Path, SetValue
from weft.spec.agents import (
    Agent,
    BoardIngredient,
    HistoryIngredient,
    Ingredient,
    LiteralIngredient,
    PromptSection,
    VariablesIngredient,
    estimate_tokens,
)
from weft.spec.conditions import names
from weft.spec.types import Scalar
from weft.spec.variables import EnvironmentSource, Variable


@rule("EXPO010", "agents", "variables", "exposure")
def named_is_exposed(subject: Subject) -> Iterator[Hit]:
    shown = subject.once(shown_to)
    for agent, path, ingredient in _ingredients(subject):
        if not isinstance(ingredient, VariablesIngredient):
            continue
        listed = shown.get(agent, set[str]())
        for index, name in enumerate(ingredient.names):
            if name not in listed:
                meant = did_you_mean(name, listed) if name not in subject.variable_names else ()
                yield Hit(
                    (*path, "names", index),
                    f'the context of {agent} names "{name}", which {agent} is not shown',
                    hint=meant or (f'add "{name}" to the variables of {agent}',),
                )


@rule("EXPO011", "agents", "flow")
def literal_fits_its_budget(subject: Subject) -> Iterator[Hit]:
    of_steps = ((step.name, path, source) for path, step, source in sources(subject))
    for owner, path, ingredient in (*_ingredients(subject), *of_steps):
        if not isinstance(ingredient, LiteralIngredient) or ingredient.max_tokens is None:
            continue
        size = estimate_tokens(ingredient.text)
        if size > ingredient.max_tokens:
            yield Hit(
                (*path, "text"),
                f"a text in the context of {owner} takes about {size} tokens and may take "
                f"{ingredient.max_tokens}",
                hint=("shorten the text", f"or set max_tokens to {size}, or remove it"),
            )


@rule("EXPO012", "agents", "exposure")
def everything_is_sent_once(subject: Subject) -> Iterator[Hit]:
    met: set[tuple[str, str]] = set()
    for agent, path, ingredient in _ingredients(subject):
        for place, what in _contents(subject, agent, path, ingredient):
            if (agent, what) in met:
                message = f"the context of {agent} holds {what} twice"
                yield Hit(place, message, hint=("keep one of the two",))
            met.add((agent, what))


def _contents(
    subject: Subject, agent: str, path: Path, ingredient: Ingredient
) -> Iterator[tuple[Path, str]]:
    """Yield the variables that an ingredient inserts, each with its path."""
    match ingredient:
        case HistoryIngredient():
            yield path, "the conversation"
        case BoardIngredient():
            yield path, "what its provider gives"
        case LiteralIngredient():
            return
        case _ if ingredient.names:
            for index, name in enumerate(ingredient.names):
                yield (*path, "names", index), f'the variable "{name}"'
        case _:
            for name in dict.fromkeys(subject.spec.exposure.get(agent, ())):
                yield path, f'the variable "{name}"'


def _ingredients(subject: Subject) -> Iterator[tuple[str, Path, Ingredient]]:
    for path, agent, ingredient in owned(subject, Agent, *_INGREDIENTS):
        yield agent.agent_name, path, cast("Ingredient", ingredient)


_INGREDIENTS: Final = kinds_in(Ingredient)
_NAME: Final = r"([A-Za-z_][A-Za-z0-9_]*)"
#: Text that looks like a placeholder, and what is wrong with it.
_ALMOST: Final = re.compile(
    rf"\$\{{{_NAME}\}}|\{{\{{{_NAME}\}}(?!\}})|\{{(?=[^{{}}]*\s)\s*{_NAME}\s*\}}"
    rf"|\{{{_NAME}(?:\.\w+|\[\w+\])+\}}"
)
_EFFECTS: Final = (
    "leaves a $ before the value",
    "leaves a { before the value",
    "is plain text because of the blanks",
    "is plain text: only {name} is replaced",
)
#: Types that cannot hold a key or password.
_NO_TEXT: Final = frozenset({Scalar("bool"), Scalar("int"), Scalar("float")})


@rule("EXPO002", "agents", "variables", "exposure")
def used_is_exposed(subject: Subject) -> Iterator[Hit]:
    hidden: dict[str, list[str]] = {}
    shown = subject.once(shown_to)
    uses = list(inserted(subject, PromptSection))
    for use in uses:
        if is_hidden(subject, use.name, shown.get(use.owner, ())):
            hidden.setdefault(use.owner, []).append(use.name)
    for use in uses:
        if use.name in hidden.get(use.owner, ()):
            yield use.hit(
                f"{use.what} inserts {use.name}, which {use.owner} is not shown",
                _expose_hint(subject, use.owner, use.name),
                fix=_expose(subject, use.owner, use.name, hidden[use.owner]),
            )


def _expose_hint(subject: Subject, agent: str, name: str) -> str:
    hint = f'add "{name}" to the variables of {agent}'
    if may_read(subject, agent, name):
        return hint
    return f'{hint}, and "{agent}" to the readers of {name}'


def _expose(subject: Subject, agent: str, name: str, hidden: list[str]) -> Fix | None:
    if not may_read(subject, agent, name):
        return None
    path: Path = ("exposure", agent)
    if agent in subject.spec.exposure:
        edit: Edit = AppendItem(path, name)
    else:
        # All findings about one agent carry the same new list, so that any of them completes it.
        edit = SetValue(path, [other for other in hidden if may_read(subject, agent, other)])
    return Fix(f"show {name} to {agent}", (edit,))


@rule("NAME003", "agents", "variables", "exposure", "handoffs", "tools", "code", modes=CONVERSATION)
def exposed_is_used(subject: Subject) -> Iterator[Hit]:
    used: dict[str, frozenset[str]] = {}
    for agent, path, name in exposed(subject):
        if name not in subject.variable_names or agent not in subject.agents:
            continue
        if is_secret(subject, name) or not may_read(subject, agent, name):
            continue
        known = subject.spec.variables.get(name)
        if known and known.description.strip():
            continue  # It is shown with its description, so the model knows what it is for.
        if agent not in used:
            used[agent] = _used_by(subject, agent)
        if name not in used[agent] and not _is_spoken_of(subject, agent, name):
            yield Hit(
                path,
                f"{agent} is shown {name}, but neither its prompt nor its rules nor its tools "
                "use it",
                hint=(f"say what {name} is for, in its description or the prompt", "or remove it"),
            )


def _is_spoken_of(subject: Subject, agent: str, name: str) -> bool:
    own = (prompt.text for prompt in templates(subject, PromptSection) if prompt.owner == agent)
    return any(True for text in own for _ in places_of(name, text))


def _used_by(subject: Subject, agent: str) -> frozenset[str]:
    """Return the names that an agent uses; a misspelt one counts as what it means."""
    used = {use.name for use in inserted(subject, PromptSection) if use.owner == agent}
    plain: set[str] = set()
    for index, handoff in enumerate(subject.spec.handoffs):
        if handoff.source_agent == agent and handoff.condition:
            parsed = routing_conditions(subject).get(index)
            used.update(names(parsed) if parsed else ())
            plain.update(() if parsed else words(handoff.condition))
    for file in code_for(subject, agent):
        plain |= quoted_words(subject.code.get(file, ""))
    return frozenset(plain.union(variable_meant(subject, name) for name in used))


@rule(
    "EXPO005", "agents", "variables", "exposure", "tools", "models", "registry", modes=CONVERSATION
)
def mentioned_is_exposed(subject: Subject) -> Iterator[Hit]:
    # EXPO002 reports what the prompt inserts.
    met = {(use.owner, use.name) for use in inserted(subject, PromptSection)}
    own, shown = _own_words(subject), subject.once(shown_to)
    # A name without an underscore may also be a plain English word.
    distinctive = [name for name in sorted(subject.variable_names) if "_" in name]
    hidden: dict[str, list[str]] = {}
    for prompt in templates(subject, PromptSection):
        agent = prompt.owner
        if agent not in hidden:
            known = {*shown.get(agent, ()), *own.get(agent, ())}
            hidden[agent] = [name for name in distinctive if is_hidden(subject, name, known)]
        for name in hidden[agent]:
            offset = _spoken_at(name, prompt.text)
            if offset is None or (agent, name) in met:
                continue
            met.add((agent, name))
            yield Hit(
                prompt.path,
                f"{prompt.what} mentions {name}, but {agent} is not shown its value",
                hint=(_expose_hint(subject, agent, name),),
                offset=offset,
                length=len(name),
            )


def _own_words(subject: Subject) -> dict[str, set[str]]:
    """Return the names an agent knows otherwise: its tools, fields, and variables it sets."""
    own: dict[str, set[str]] = {}
    for tool in subject.spec.tools:
        own.setdefault(tool.agent, set()).add(tool.function)
    for binding in subject.spec.registry:
        fields = subject.models.get(binding.model or "", {})
        own.setdefault(binding.agent, set()).update(fields)
    for agent, name in set_in_turns(subject):
        own.setdefault(agent, set()).add(name)
    return own


def _spoken_at(name: str, text: str) -> int | None:
    """Return the first offset of a name outside braces; other rules check braces."""
    for at in places_of(name, text):
        if not text[max(at - 9, 0) : at].rstrip().endswith("{"):
            return at
    return None


@rule("EXPO006", "agents", "variables")
def reference_is_exact(subject: Subject) -> Iterator[Hit]:
    for prompt in templates(subject, PromptSection):
        for found in _ALMOST.finditer(prompt.text):
            shape = found.lastindex or 1
            name = found[shape]
            if name in subject.variable_names:
                text = " ".join(found[0].split())
                yield Hit(
                    prompt.path,
                    f"in {prompt.what}, {text} {_EFFECTS[shape - 1]}",
                    hint=(
                        f"write {{{name}}} to put the value in",
                        f"or {{{{{name}}}}} for the literal text {{{name}}}",
                    ),
                    offset=found.start(),
                    length=len(found[0]),
                )


@rule("EXPO007", "agents", "variables", "exposure")
def reader_may_read(subject: Subject) -> Iterator[Hit]:
    for agent, path, name in exposed(subject):
        if agent in subject.agents and not may_read(subject, agent, name):
            yield Hit(
                path,
                f"{agent} is shown {name}, but is not among its readers",
                hint=(f'add "{agent}" to the readers of {name}', "or remove it here"),
            )


@rule("EXPO008", "agents", "variables", "exposure")
def secret_is_hidden(subject: Subject) -> Iterator[Hit]:
    hint = "let a tool use the secret instead: what a model sees, it can repeat"
    return _sights(subject, lambda variable: variable.secret, _secrecy, hint)


def _secrecy(way: tuple[str, ...]) -> str:
    return "is secret" if len(way) == 1 else f"comes from the secret {way[-1]}"


@rule("EXPO013", "agents", "variables", "exposure")
def key_is_hidden(subject: Subject) -> Iterator[Hit]:
    hint = 'set "secret" to true and let a tool use it, or rename it if it is not a secret'
    return _sights(subject, _looks_secret, _likeness, hint)


def _looks_secret(variable: Variable) -> bool:
    source = variable.source
    return (
        isinstance(source, EnvironmentSource)
        and not variable.secret
        and variable.type not in _NO_TEXT
        and names_a_key(source.env_var)
    )


def _likeness(way: tuple[str, ...]) -> str:
    read = "is read" if len(way) == 1 else f"comes from {way[-1]}, which is read"
    return f"{read} from an environment variable that is named like a secret"


def _sights(
    subject: Subject,
    is_goal: Callable[[Variable], bool],
    describe: Callable[[tuple[str, ...]], str],
    hint: str,
) -> Iterator[Hit]:
    """Report variables in contexts and prompts that match a goal or are computed from one."""
    shown: set[tuple[str, str]] = set()
    for agent, path, name in exposed(subject):
        way = way_down(subject, name, is_goal)
        if way:
            shown.add((agent, name))
            fact = f"{agent} is shown {name}, which {describe(way)}"
            yield Hit(path, fact, cause=computed_from(way), hint=(hint,))
    for use in inserted(subject, PromptSection):
        way = way_down(subject, use.name, is_goal)
        if way and (use.owner, use.name) not in shown:
            fact = f"{use.what} inserts {use.name}, which {describe(way)}"
            yield use.hit(fact, hint, cause=computed_from(way))


def shown_to(subject: Subject) -> dict[str, set[str]]:
    """Return the variables that each agent sees; misspelt names count as what they mean."""
    shown: dict[str, set[str]] = {}
    for agent, listed in subject.spec.exposure.items():
        names = {variable_meant(subject, name) for name in listed}
        shown.setdefault(agent_meant(subject, agent), set()).update(names)
    return shown


def is_hidden(subject: Subject, name: str, shown: Collection[str]) -> bool:
    return name in subject.variable_names and name not in shown and not is_secret(subject, name)


def is_secret(subject: Subject, name: str) -> bool:
    return name in subject.spec.variables and subject.spec.variables[name].secret


def may_read(subject: Subject, agent: str, name: str) -> bool:
    variable = subject.spec.variables.get(name)
    return variable is None or variable.readers is None or agent in variable.readers


def exposed(subject: Subject) -> Iterator[tuple[str, Path, str]]:
    """Yield each variable that an agent is shown, once per agent."""
    for agent, listed in subject.spec.exposure.items():
        first: dict[str, int] = {}
        for index, name in enumerate(listed):
            first.setdefault(name, index)
        for name, index in first.items():
            yield agent, ("exposure", agent, index), name


def code_for(subject: Subject, agent: str) -> set[str]:
    """Return the code that runs for an agent: its tools and hooks, and what they import."""
    spec, code = subject.spec, subject.code
    declared = [("tools", tool.file) for tool in spec.tools if tool.agent == agent]
    declared += [("tools", t.file) for t in spec.lifecycle_tools if t.agent in (None, agent)]
    declared += [("hooks", hook.file) for hook in spec.hooks if hook.agent in (None, agent)]
    waiting = [path for folder, file in declared if (path := path_in(folder, file, code))]
    modules, found = code_of(subject).modules, set[str]()
    while waiting:
        path = waiting.pop()
        if path not in found:
            found.add(path)
            waiting += modules[path].imports if path in modules else ()
    return found
