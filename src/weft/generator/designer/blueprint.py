"""The blueprint: what all modules share - variables, what people see, what frames a run."""

from collections.abc import Iterator, Sequence
from typing import Final

from weft.generator.designer.brief import Brief
from weft.generator.designer.several import briefs_of
from weft.generator.designer.team import FEEDBACK, PIPELINE, REDUNDANT, closing_agent, kind_of
from weft.generator.designer.text import plain_line
from weft.generator.designer.words import kind_of_data
from weft.generator.names import pascal_case, snake_case, unique
from weft.ids import BUILT_IN_VARIABLES
from weft.spec.plan import (
    PatternSelection,
    PlannedComponent,
    PlannedLifecycle,
    PlannedVariable,
    PlannedWorkflow,
    SourceKind,
    StrategyModule,
    TechnicalBlueprint,
    WorkflowStrategy,
)

_LIMITS: Final = (
    "limit*|threshold*|more than|at most|maximum|deadline*|budget*|above|exceed*|obergrenze"
    "|mehr als|mas de|plus de|上限"
)
#: What is worked out, by the words that ask for it.
_WORKED_OUT: Final = {
    "total": "total*|the sum|sum of|add up|adds up|summe|gesamt*|suma|somme|合計",
    "average": "average*|durchschnitt*|promedio|moyenne|平均",
    "score": "score*|rating*|bewertungspunkt*|puntuacion|note globale",
    "count": "count*|how many|number of|anzahl|cuantos|combien",
}
_LOADS: Final = (
    "load|loads|preferences|look up the customer first|knows the history|past tickets|their history"
    "|lade|ladt|geladen|cargar|carga|charger|読み込"
)
_NOTIFIES: Final = (
    "notif*|inform|informs|let us know|know when|tell us when|archive*|benachrichtig*|avisar|avisa"
    "|prevenir|通知"
)
_ASKS: Final = "Asks a person for the details of the {}."
_SHOWS: Final = "Shows what came of the {} and asks to approve it or to say what is missing."
#: What the agents of a main module decide, by the number of its pattern.
_STATES: Final = {
    1: ("route", "Which specialist takes the {}"),
    2: ("outcome", "Whether the {} is solved or moves up"),
    3: ("verdict", "Whether the {} is accepted or must be revised"),
    4: ("assignment", "Which team works on the {} next"),
    5: ("next speaker", "Who goes on with the {}"),
    6: ("status", "How far the {} has come"),
    7: ("best answer", "Whose answer about the {} counts"),
    8: ("next step", "Which specialist is asked about the {} next"),
    9: ("progress", "Whether tasks of the {} are open"),
}


def design_blueprint(
    brief: Brief, selection: PatternSelection, strategy: WorkflowStrategy
) -> TechnicalBlueprint:
    """Return what the modules of a strategy share.

    Data is looked up or kept; services that know something are external; a limit is a setting of
    the deployment; a total, average, score or count is computed; what agents and people decide is
    state. Loading comes before a run and notifying after it, where the brief asks for them. Which
    of several workflows comes first stands in the roles of the selection.
    """
    variables: dict[str, PlannedVariable] = {}
    parts = briefs_of(brief, selection)
    for workflow, part in zip(selection.workflows, parts, strict=True):
        for variable in workflow_variables(part, modules_of(workflow, selection, strategy)):
            variables.setdefault(variable.name, variable)
    return TechnicalBlueprint(
        global_context_variables=tuple(variables.values()),
        ui_components=tuple(_components(parts, selection, strategy)),
        before_chat_lifecycle=_before(brief),
        after_chat_lifecycle=_after(brief),
    )


def modules_of(
    workflow: PlannedWorkflow, selection: PatternSelection, strategy: WorkflowStrategy
) -> list[StrategyModule]:
    """Return the modules of one workflow; those that name none are of the first."""
    first = selection.workflows[0].name
    return [it for it in strategy.modules if (it.workflow or first) == workflow.name]


def workflow_variables(brief: Brief, modules: Sequence[StrategyModule]) -> list[PlannedVariable]:
    """Return the variables of one workflow."""
    thing, wording = brief.domain.thing, brief.wording
    found = [_datum(name, brief) for name in brief.data]
    found += [
        _variable(
            f"{service.lower()} record", "external", f"What {service} knows about the {thing}."
        )
        for service in brief.services
    ]
    if wording.has(_LIMITS):
        found.append(_variable(f"{thing} limit", "config", f"The limit set for each {thing}."))
    for word, terms in _WORKED_OUT.items():
        if wording.has(terms):
            purpose = f"The {word} worked out for the {thing}."
            found.append(_variable(f"{thing} {word}", "computed", purpose))
            break
    return [*found, *_states(thing, modules)]


def _datum(name: str, brief: Brief) -> PlannedVariable:
    kind = kind_of_data(name, brief.domain)
    verb = "Looked up" if kind == "data_reference" else "Kept"
    words = name if len(snake_case(name, "").split("_")) > 1 else f"{name} data"
    purpose = f"{verb} while the {brief.domain.thing} is worked on: {plain_line(name, 40)}."
    return _variable(words, kind, purpose)


def _variable(
    words: str, kind: SourceKind, purpose: str, hint: str | None = None
) -> PlannedVariable:
    name = snake_case(words, "work_data")
    if name.startswith("weft") or name in BUILT_IN_VARIABLES:
        name = f"case_{name}"  # the name belongs to runs themselves
    return PlannedVariable(name=name, type=kind, purpose=purpose, trigger_hint=hint)


def _states(thing: str, modules: Sequence[StrategyModule]) -> Iterator[PlannedVariable]:
    for module in modules:
        kind = kind_of(module)
        if kind == "approval":
            hint = f"Set by the answer to {approval_tool(thing)}."
            purpose = f"Whether the {thing} was approved."
            yield _variable(f"{thing} approval", "state", purpose, hint)
        if kind == "core" and module.agents_needed:
            word, purpose = _STATES[module.pattern_id]
            at = -1 if module.pattern_id in (FEEDBACK, REDUNDANT) else 0
            hint = f"Set by {module.agents_needed[at]}."
            if module.pattern_id == PIPELINE:
                hint = f"Set when {closing_agent(module.agents_needed)} calls {status_tool(thing)}."
            yield _variable(f"{thing} {word}", "state", f"{purpose.format(thing)}.", hint)


def approval_tool(thing: str) -> str:
    """Return the tool that asks somebody to approve."""
    return snake_case(f"approve {thing}", "approve")


def status_tool(thing: str) -> str:
    """Return the tool by which a pipeline says how far it has come."""
    return snake_case(f"set {thing} status", "set_status")


def _components(
    parts: Sequence[Brief], selection: PatternSelection, strategy: WorkflowStrategy
) -> Iterator[PlannedComponent]:
    shown: list[str] = []
    for workflow, part in zip(selection.workflows, parts, strict=True):
        thing = part.domain.thing
        for module in modules_of(workflow, selection, strategy):
            kind = kind_of(module)
            if not module.agents_needed or kind not in ("intake", "approval"):
                continue
            asks = kind == "intake"
            words = f"{thing} form" if asks else f"{thing} approval"
            component = unique(pascal_case(words, "Question"), shown)
            shown.append(component)
            question = snake_case(f"ask for {thing} details", "ask_for_details")
            yield PlannedComponent(
                module_name=module.module_name,
                agent=module.agents_needed[0],
                tool=question if asks else approval_tool(thing),
                label=f"Tell us about the {thing}" if asks else f"Decide about the {thing}",
                component=component,
                display="inline" if asks else "artifact",
                summary=_ASKS.format(thing) if asks else _SHOWS.format(thing),
            )


def _before(brief: Brief) -> PlannedLifecycle | None:
    if not brief.wording.has(_LOADS):
        return None
    known = [it for it in brief.data if kind_of_data(it, brief.domain) == "data_reference"]
    what = known[0] if known else f"{brief.domain.thing} data"
    return PlannedLifecycle(
        name=snake_case(f"load {what}", "load_data"),
        purpose=f"Load the {plain_line(what, 40)} before the work begins.",
        trigger="before_chat",
    )


def _after(brief: Brief) -> PlannedLifecycle | None:
    """A service that carries messages has a module of its own."""
    if brief.messengers or not brief.wording.has(_NOTIFIES):
        return None
    return PlannedLifecycle(
        name=snake_case(f"report {brief.domain.thing} result", "report_result"),
        purpose=f"Tell the people concerned what came of the {brief.domain.thing}.",
        trigger="after_chat",
    )
