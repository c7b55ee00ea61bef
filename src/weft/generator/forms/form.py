"""Reads forms, and makes a plan from one: its answers are the extended plan."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.resources import files
from typing import Final, TypeAlias

from weft.errors import ExpressionError, UsageError
from weft.findings import Finding, Path
from weft.generator.compile.compiler import compile_drafts
from weft.generator.compile.values import CALLS
from weft.generator.forms.form_scenarios import Known, scenario_faults
from weft.generator.forms.patterns import pattern_of
from weft.generator.names import pascal_case, snake_case
from weft.generator.plans.faults import fault_finding
from weft.generator.plans.plan import make_plan
from weft.generator.plans.rules import Fault, plan_faults
from weft.ids import SNAKE_NAME, USER, suggestion
from weft.packages.edit.rewrite import child, is_list
from weft.packages.reader import open_document, read_part
from weft.packages.text import documents
from weft.packages.text.documents import Document
from weft.spec.agents import REPLY_LIMITS, AgentType
from weft.spec.condition_parser import parse_condition
from weft.spec.conditions import names as names_in
from weft.spec.form import (
    ASK_USER,
    END,
    INITIATED_BY,
    TRIGGERS,
    Form,
    FormSource,
    FormStart,
    FormStep,
)
from weft.spec.part import JsonMap, JsonValue
from weft.spec.plan import (
    ActionPlan,
    ModuleAgents,
    PatternSelection,
    PlannedField,
    TechnicalBlueprint,
    Trigger,
    WorkflowStrategy,
)
from weft.spec.templates import references
from weft.spec.workflow import plain

__all__ = ["Form", "example_form", "form_plan", "read_form"]

#: The variable that holds the record of a case.
RECORD: Final = "record"
_KINDS: Final = {"database": "data_reference"}
_MOST_FAULTS: Final = 8
#: Where the faults of a plan are in the form that it was made from.
_PLACES: Final = re.compile(
    r"(modules|ModuleAgents|ui_components|global_context_variables|scenarios)\[(\d+)\]"
    r"|\.(watch|start|greeting|never)\b"
)
#: How the compiler notes that it made no test of a scenario.
_NOT_RUN: Final = re.compile(r"^scenario_(\d+) is not run: (.*)$", re.MULTILINE)
_KEYS: Final = ("reads", "writes", "shows", "tell", "takes")
_Faults: TypeAlias = Iterator[tuple[Path, str, str]]


def example_form(name: str) -> str:
    """Return the text of a form with explanations, for a workflow of this name."""
    text = files("weft.generator").joinpath("example_form.yaml").read_text(encoding="utf-8")
    pointer = "# yaml-language-server: $schema=../schemas/form.schema.json\n"
    return pointer + text.replace("ClinicIntake", name)


def read_form(file: str, text: str) -> Form:
    """Read a form, in YAML or JSON. Raises UsageError with the place of what is wrong."""
    document = documents.read_text(file, text)
    form, found = None, list(document.findings)
    if document.ok:
        form, errors = read_part(open_document(file, document, "form"), Form)
        found += errors
    if form is None or found:
        raise _refused(found)
    faults = [*_faults(form)] or [_placed(each, form) for each in plan_faults(form_plan(form))]
    faults = faults or [*_flow_faults(form)] or [*_not_run(form)]
    if faults:
        raise _refused(
            [
                fault_finding(Fault("", message, hint), document.place(_written(document, path)))
                for path, message, hint in faults
            ]
        )
    return form


def _written(document: Document, path: Path) -> Path:
    """Return a path as it is written: one value may stand for a list."""
    found: list[str | int] = []
    data: object = document.data
    for step in path:
        if is_list(data) or not isinstance(step, int):
            found.append(step)
            data = child(data, step)
    return tuple(found)


def _not_run(form: Form) -> _Faults:
    """Yield the scenarios of which no test can be made."""
    for draft in compile_drafts(form_plan(form)):
        for number, why in _NOT_RUN.findall("\n".join(draft.notes)):
            yield ("scenarios", int(number) - 1), f"the scenario cannot be run: {why}", ""


def _refused(wrong: Sequence[Finding]) -> UsageError:
    found = {f"{each.place}: {each.message}": each for each in wrong}
    hint = "; ".join(wrong[0].hint) or None
    lines = "\n".join([*found][:_MOST_FAULTS])
    return UsageError(lines, hint=hint, findings=tuple(found.values()))


def _placed(fault: Fault, form: Form) -> tuple[Path, str, str]:
    """Return a fault of the plan with its path in the form."""
    found = _PLACES.search(fault.path)
    path: list[str | int] = ["workflow"] if found is None else [found[3]]
    if found and found[1]:
        part, place = found[1], int(found[2])
        if part == "global_context_variables":
            name = str([*_variables(form)][place]["name"])
            path = ["data", name] if name in form.data else ["steps"]
        elif part == "scenarios":
            path = ["scenarios", place]
        else:
            shown = [at for at, step in enumerate(form.steps) if _asks(step)]
            place = shown[place] if part == "ui_components" else place
            path = ["steps", place]
            if way := re.search(r"leads_to\[(\d+)\]", fault.path):
                outcomes = form.steps[place].outcomes
                whens = [when for when, targets in outcomes.items() for _ in targets]
                path += ["outcomes", whens[int(way[1])]]
    keys = (key for key in _KEYS if re.search(rf"\.{key}\b", fault.path))
    return (*path, *keys), fault.message, fault.hint


def _faults(form: Form) -> _Faults:
    """Yield what is wrong with a form, and could still be said in a plan."""
    if form.start in ("schedule", "document"):
        hint = 'write start: {cron: "0 7 * * *"}, or start: {collection: ..., condition: ...}'
        yield ("start",), f"the start {form.start} needs its details", hint
    known = {step.name: step for step in reversed(form.steps)}
    for place, step in enumerate(form.steps):
        if known[step.name] is not step:
            message = f"two steps are named {step.name}"
            yield ("steps", place, "name"), message, "give each step a name of its own"
        if step.name in (USER, END):
            yield ("steps", place, "name"), f"{step.name} is a target itself", "rename the step"
        for path, message, hint in _step_faults(form, step, known):
            yield ("steps", place, *path), message, hint
    values = [*_kept(form), *form.data]
    for name, source in form.data.items():
        for field in source.fields if (source.url or "").startswith(CALLS) else ():
            if field.name not in values:
                message = f"no step writes {field.name}, which is sent"
                yield ("data", name, "fields"), message, suggestion(field.name, values)
    yield from _scenario_faults(form, known)


def _scenario_faults(form: Form, known: Mapping[str, FormStep]) -> _Faults:
    names = _scenario_names(form)
    for place, scenario in enumerate(form.scenarios):
        for path, message, hint in scenario_faults(scenario, names):
            yield ("scenarios", place, *path), message, hint
        for name, taken in scenario.takes.items():
            outcomes = (*known[name].outcomes, ASK_USER) if name in known else taken
            for outcome in taken:
                if outcome not in outcomes:
                    at: Path = ("scenarios", place, "takes", name)
                    yield at, f"unknown outcome {outcome}", suggestion(outcome, outcomes)


def _scenario_names(form: Form) -> Known:
    asking = [step for step in form.steps if _asks(step)]
    return Known(
        agents={step.name: _name(form, step) for step in form.steps},
        asked={_tool(form, step): _asked(step) for step in asking},
        tools={step.name: _tool(form, step) for step in asking},
    )


def _flow_faults(form: Form) -> _Faults:
    """Yield the steps that no way leads to, and those from which none leads out."""
    reached = _reached(form, form.steps[0].name, form.watch and form.watch.go_to)
    for place, step in enumerate(form.steps):
        if step.name not in reached:
            yield ("steps", place, "name"), f"no outcome leads to {step.name}", "add one"
        elif _reached(form, step.name).isdisjoint((USER, END)):
            yield ("steps", place, "outcomes"), "no way leads to an end", "add an outcome to end"


def _reached(form: Form, *names: str | None) -> set[str]:
    """Return everything that some steps lead to, with these steps."""
    steps, found = {step.name: step for step in form.steps}, set[str]()
    waiting = [name for name in names if name]
    while waiting:
        name = waiting.pop()
        if name not in found and name in steps:
            waiting += [to for all_ in steps[name].outcomes.values() for to in all_]
        found.add(name)
    return found


def _step_faults(form: Form, step: FormStep, known: Mapping[str, FormStep]) -> _Faults:
    attended = _trigger(form) == "chat"
    if not step.outcomes:
        yield ("outcomes",), f"step {step.name} has no outcomes", "write outcomes: {done: end}"
    if step.asks_back and not attended:
        yield ("asks_back",), "a run with this start has no chat", "use start: chat, or a question"
    if step.by == "person" and any(field.name in form.data for field in step.writes):
        yield ("writes",), "a person fills in values and calls no service", "let an agent call it"
    told = {"decision", *(field.name for field in step.writes)}
    for each in references(step.tell or "") if step.by == "person" else ():
        if each.name not in told:
            yield ("tell",), f"unknown field {each.name}", suggestion(each.name, told)
    for outcome, targets in step.outcomes.items():
        path = ("outcomes", outcome)
        if not SNAKE_NAME.match(outcome):
            yield from ((path, *fault) for fault in _condition_faults(form, outcome, step))
        if USER in targets and not attended:
            yield path, "a run with this start has no chat", "write end"
        if not targets:
            yield path, "nothing follows", "name a step, user or end"
        members = [known[name] for name in targets if name in known]
        if len(members) > 1:
            yield from ((path, *fault) for fault in _parallel(members))


def _condition_faults(form: Form, text: str, step: FormStep) -> Iterator[tuple[str, str]]:
    values = [*_kept(form), *form.data, *step.outcomes]
    try:
        names = names_in(parse_condition(text))
    except ExpressionError:
        names = ()
    if not names:
        better = snake_case(text, "outcome")
        yield f'"{text}" is neither an outcome nor a condition', f"write {better}"
    for name in names:
        if name not in values:
            yield f"the condition tests the unknown value {name}", suggestion(name, values)


def _parallel(steps: Iterable[FormStep]) -> Iterator[tuple[str, str]]:
    """Yield why steps cannot work in parallel: they ask no one, and one step follows all."""
    following = {to for step in steps for targets in step.outcomes.values() for to in targets}
    if len(following) > 1:
        yield "steps that work in parallel lead to one place", "give them the same target"
    for step in steps:
        if step.by == "person" or step.asks_back or step.question:
            yield f"{step.name} waits for a person and cannot work in parallel", "put it before"


def _trigger(form: Form) -> Trigger:
    """Return the trigger that a word names, or that the details belong to."""
    start = form.start
    if not isinstance(start, FormStart):
        return TRIGGERS[start]
    if start.cron:
        return "schedule"
    if start.path:
        return "webhook"
    return "database_condition" if start.collection else "form_submit"


def _kept(form: Form) -> dict[str, PlannedField]:
    """Return the values that steps and the start set, by name; the first type counts."""
    fields = list(form.start.fields) if isinstance(form.start, FormStart) else []
    for step in form.steps:
        fields += [*step.writes, *(step.question.fields if step.question else ())]
    found: dict[str, PlannedField] = {}
    for field in fields:
        if field.name not in form.data:
            found.setdefault(field.name, field)
    return found


def form_plan(form: Form) -> ActionPlan:
    """Return the plan that a form describes: one module with one agent for each step."""
    pattern = pattern_of(form)
    legend: JsonMap = {"pattern_id": pattern.id, "pattern_name": pattern.title}
    described: JsonMap = {"name": form.workflow, "description": form.description}
    selection = {
        "is_multi_workflow": False,
        "pack_name": form.workflow,
        "workflows": [{**described, "role": "primary", **legend}],
    }
    trigger = _trigger(form)
    strategy = {
        "workflow_name": form.workflow,
        "workflow_description": form.description,
        "human_in_loop": trigger == "chat",
        "pattern": [pattern.name],
        "trigger": trigger,
        "initiated_by": INITIATED_BY[trigger],
        "modules": [_module(form, step, place) | legend for place, step in enumerate(form.steps)],
        "start": plain(form.start) if isinstance(form.start, FormStart) else None,
        "greeting": form.greeting,
        "watch": {"words": form.watch.words, "to": form.watch.go_to} if form.watch else None,
        "never": form.never,
        "scenarios": [plain(scenario) for scenario in form.scenarios],
    }
    blueprint = {
        "global_context_variables": [*_variables(form)],
        "ui_components": [*_components(form)],
    }
    return make_plan(
        1,
        PatternSelection.model_validate(selection),
        WorkflowStrategy.model_validate(strategy),
        TechnicalBlueprint.model_validate(blueprint),
        [
            ModuleAgents.model_validate({"module_index": place, "agents": [_agent(form, step)]})
            for place, step in enumerate(form.steps)
        ],
    )


def _name(form: Form, step: FormStep) -> str:
    """Return the name of the agent of a step."""
    return pascal_case(step.name, f"Step{form.steps.index(step) + 1}")


def _title(form: Form, step: FormStep) -> str:
    return f"Module {form.steps.index(step) + 1}: {step.name}"


def _task(step: FormStep) -> str:
    asked = "The user of the run" if step.who == USER else step.who
    return step.task or f"{asked} decides: {', '.join(step.outcomes)}."


def _module(form: Form, step: FormStep, place: int) -> JsonMap:
    outcomes = step.outcomes
    return {
        "module_name": _title(form, step),
        "module_index": place,
        "module_description": _task(step),
        "agents_needed": [_name(form, step)],
        "leads_to": [{"when": when, "to": to} for when, all_ in outcomes.items() for to in all_],
    }


def _variables(form: Form) -> Iterator[JsonMap]:
    """Yield the record with all that is kept, or a state for each value, and the data."""
    kept, written = _kept(form), {field.name for step in form.steps for field in step.writes}
    if form.record:
        yield {
            "name": RECORD,
            "type": "data_entity",
            "purpose": "What is kept of the case.",
            "key": form.key or "chat_id",
            "collection": form.record,
            "fields": [plain(field) for field in kept.values()],
        }
    for name, field in kept.items():
        if name in written and not form.record:
            purpose = field.description or f"The {name.replace('_', ' ')} of the case."
            type_ = plain(field).get("type")
            yield {"name": name, "type": "state", "purpose": purpose, "value_type": type_}
    for name, source in form.data.items():
        yield _source(name, source)


def _source(name: str, source: FormSource) -> JsonMap:
    data = plain(source)
    field = data.pop("field", None)
    fields: JsonValue = [field] if field else data.pop("fields", [])
    kind = str(data.pop("from"))
    if kind == "database":
        data.setdefault("collection", pascal_case(name, "Documents"))
    return {
        "name": name,
        "purpose": data.pop("about", f"The {name.replace('_', ' ')}."),
        "value_type": data.pop("type", None),
        "fields": fields,
        **data,
        "type": _KINDS.get(kind, kind),
    }


def _asks(step: FormStep) -> bool:
    return step.by == "person" or step.question is not None


def _asked(step: FormStep) -> str:
    """Return whom a step asks."""
    return step.question.to if step.question else step.who or USER


def _tool(form: Form, step: FormStep) -> str:
    return f"ask_{snake_case(_name(form, step), 'person')}"


def _components(form: Form) -> Iterator[JsonMap]:
    for step in filter(_asks, form.steps):
        to = _asked(step)
        yield {
            "module_name": _title(form, step),
            "agent": _name(form, step),
            "tool": _tool(form, step),
            "label": step.name,
            "component": f"{_name(form, step)}Form",
            "display": "inline",
            "summary": _task(step)[:200],
            "approver": None if to == USER else to,
            "shows": [*step.shows],
            "fields": [
                plain(field) for field in (step.question.fields if step.question else step.writes)
            ],
        }


def _agent(form: Form, step: FormStep) -> JsonMap:
    way = "approval" if step.by == "person" else "context" if step.asks_back else "none"
    purpose = f"Asks a person for {step.name}."[:140]
    tool: JsonMap = {"name": _tool(form, step), "purpose": purpose, "interaction_mode": "inline"}
    return {
        "agent_name": _name(form, step),
        "agent_type": _type(form, step),
        "objective": _task(step),
        "human_interaction": way,
        "max_consecutive_auto_reply": REPLY_LIMITS[way],
        "agent_tools": [tool] if _asks(step) else [],
        "approver": None if step.who == USER else step.who,
        "outcomes": [when for when in step.outcomes if SNAKE_NAME.match(when)],
        "reads": [*dict.fromkeys((*step.reads, *step.shows))],
        "writes": [field.name for field in step.writes],
        "tell": step.tell,
    }


def _type(form: Form, step: FormStep) -> AgentType:
    """Return what an agent is for, as diagrams show it."""
    if step.by == "person":
        return "evaluator"
    is_intake = step.asks_back and step is form.steps[0]
    return "intake" if is_intake else "router" if len(step.outcomes) > 1 else "worker"
