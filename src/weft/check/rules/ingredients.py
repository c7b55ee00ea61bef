"""Family EXPO, second part: what an agent's own context is made of."""

from collections.abc import Iterator

from weft.check.flow_parts import sources
from weft.check.rule import rule
from weft.check.rules.exposure import shown_to
from weft.check.spelling import did_you_mean
from weft.check.subject import Hit, Subject
from weft.findings import Fix, Path, Remove
from weft.spec.agents import (
    BoardIngredient,
    HistoryIngredient,
    Ingredient,
    LiteralIngredient,
    VariablesIngredient,
    estimate_tokens,
)


@rule("EXPO009", "exposure")
def exposed_once(subject: Subject) -> Iterator[Hit]:
    for agent, listed in subject.spec.exposure.items():
        met: set[str] = set()
        for index, name in enumerate(listed):
            path = ("exposure", agent, index)
            if name in met:
                yield Hit(
                    path,
                    f"{agent} is shown {name} twice",
                    hint=("remove one of the two",),
                    fix=Fix(f"remove the repeated {name}", (Remove(path),)),
                )
            met.add(name)


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
    of_steps = ((step.name, path, it) for path, step, it in sources(subject))
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
    """Yield what an ingredient puts in, each with the place that says so."""
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
    for number, agent in enumerate(subject.spec.agents):
        for index, ingredient in enumerate(agent.context):
            yield agent.agent_name, ("agents", number, "context", index), ingredient
