"""Family FLOW, second part: what steps read and set, branches, and retrieval."""

import re
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from weft.check.answer_schema import Lost
from weft.check.declarations import bound_model
from weft.check.flow_parts import (
    is_flow,
    placed_parts,
    sources,
    state_fields,
    steps,
    tested,
    texts,
    type_at,
    works,
)
from weft.check.rules.comparisons import instead, kinds_of
from weft.check.rules.conditions import first_mentions
from weft.check.rules.flow import approvals
from weft.check.rules.references import Reference, unknown_field, unknown_names
from weft.check.spelling import agent_meant, listed, short
from weft.check.subject import Hit, Subject, rule
from weft.check.values import key_of, told, value_error
from weft.errors import ExpressionError
from weft.findings import Path
from weft.spec import flow as spec
from weft.spec import templates
from weft.spec.conditions import Name
from weft.spec.type_meaning import finite_values
from weft.spec.types import ANY, Scalar, TypeExpr, print_type

_BOOL: Final = Scalar("bool")
#: Braces around a part of a value: a template inserts whole variables only.
_PART: Final = re.compile(r"(?<!\{)\{([A-Za-z_]\w*(?:\.\w+)+)\}(?!\})")


@rule("NAME001", "flow", "agents", "variables")
def agents_and_variables_exist(subject: Subject) -> Iterator[Hit]:
    return unknown_names(subject, _references(subject))


def _references(subject: Subject) -> Iterator[Reference]:
    for path, step, work in works(subject):
        if isinstance(work, spec.AgentWork):
            what = f"the step {step.name} is done by"
            yield Reference((*path, "agent"), "agent", work.agent, what)
    for path, step, source in sources(subject):
        if isinstance(source, spec.VariableIngredient):
            what = f"the context of {step.name} reads"
            yield Reference((*path, "name"), "variable", source.name, what)


class _Asked(NamedTuple):
    """A variable that something asks for, or a part of one.

    `whole`: it is set, which only whole fields can be.
    """

    path: Path
    name: str
    what: str
    offset: int = 0
    whole: bool = False


@rule("COND002", "flow", "variables", "models")
def tested_field_exists(subject: Subject) -> Iterator[Hit]:
    return _unknown_fields(subject, _tested(subject))


@rule("NAME001", "flow", "variables", "models")
def field_exists(subject: Subject) -> Iterator[Hit]:
    return _unknown_fields(subject, (*_read(subject), *_set(subject), *_inserted(subject)))


def _unknown_fields(subject: Subject, fields: Iterable[_Asked]) -> Iterator[Hit]:
    for it in fields:
        found = type_at(subject, it.name)
        if isinstance(found, Lost):
            known = found.known if found.offset else state_fields(subject)
            what = f"{it.what} {it.name}," if found.offset else it.what
            yield unknown_field(it.path, what, found, offset=it.offset, known=known)


@rule("FLOW019", "flow", "variables", "models")
def field_can_be_used(subject: Subject) -> Iterator[Hit]:
    fields = state_fields(subject)
    for it in (*_read(subject), *_set(subject)):
        first = it.name.partition(".")[0]
        if isinstance(type_at(subject, it.name), Lost):
            continue
        if first not in fields:
            message = f'{it.what} "{it.name}", which is not a field of the state'
            yield Hit(it.path, message, hint=("use a field of the state: a derived variable",))
        elif it.whole and first != it.name:
            message = f'{it.what} "{it.name}", but only whole fields can be set'
            yield Hit(it.path, message, hint=(f"set {first}, or write a function as the step",))
    yield from _parts_inserted(subject)


def _tested(subject: Subject) -> Iterator[_Asked]:
    for placed in tested(subject):
        if not isinstance(placed.condition, ExpressionError):
            for name, offset in first_mentions(placed.text, paths=True).items():
                yield _Asked(placed.path, name, f'"{placed.path[-1]}" tests', offset)


def _read(subject: Subject) -> Iterator[_Asked]:
    for path, step, it in sources(subject):
        what = f"the context of {step.name} reads"
        if isinstance(it, spec.StateIngredient):
            yield _Asked((*path, "path"), it.path, what)
        elif isinstance(it, spec.RetrievalIngredient):
            if it.query_path:
                yield _Asked((*path, "query_path"), it.query_path, what)
            for index, one in enumerate(it.filters):
                if one.path:
                    yield _Asked((*path, "filters", index, "path"), one.path, what)


def _set(subject: Subject) -> Iterator[_Asked]:
    for path, step, work in works(subject):
        if isinstance(work, spec.AgentWork) and work.output:
            yield _Asked((*path, "output"), work.output, f"{step.name} sets", whole=True)
    for path, it in approvals(subject):
        if it.output:
            yield _Asked((*path, "output"), it.output, f"{it.name} sets", whole=True)


def _inserted(subject: Subject) -> Iterator[_Asked]:
    for path, text in texts(subject):
        for found in templates.references(text):
            yield _Asked(path, found.name, f"{path[-1]} inserts", found.offset)


def _parts_inserted(subject: Subject) -> Iterator[Hit]:
    for path, text in texts(subject):
        for found in _PART.finditer(text):
            if found[1].partition(".")[0] in subject.variable_names:
                yield Hit(
                    path,
                    f'{path[-1]} inserts "{found[1]}", and only whole fields can be inserted',
                    hint=("let a step set a field of its own to it, and insert that",),
                    offset=found.start(1),
                    length=len(found[1]),
                )


def _branches(subject: Subject) -> Iterator[tuple[Path, spec.Branch]]:
    for it in placed_parts(subject):
        if isinstance(it.part, spec.Branch):
            yield it.path, it.part


@rule("FLOW022", "flow")
def branch_has_cases(subject: Subject) -> Iterator[Hit]:
    for path, branch in _branches(subject):
        if not branch.cases:
            fact = f"the branch {branch.name} has no cases"
            yield Hit(path, fact, hint=("add a case for each value that leads somewhere else",))


@rule("COND003", "flow", "variables", "models")
def case_can_come(subject: Subject) -> Iterator[Hit]:
    for path, branch, type_ in _typed_branches(subject):
        for index, case in enumerate(branch.cases):
            if _never_comes(subject, case, type_):
                yield Hit(
                    (*path, "cases", index, "value"),
                    f"{branch.on} is never {told('', case.value)}, so this case never applies",
                    hint=_meant(type_, case.value),
                )


def _never_comes(subject: Subject, case: spec.Case, type_: TypeExpr) -> bool:
    # Null also stands for "no value yet".
    return case.value is not None and value_error(type_, case.value, subject.models) is not None


def _meant(type_: TypeExpr, value: object) -> tuple[str, ...]:
    scalar = value if isinstance(value, str | int | float) else None
    return instead(type_, scalar) or ("write a value of its type, or remove the case",)


@rule("FLOW024", "flow", "variables", "models")
def every_value_has_a_case(subject: Subject) -> Iterator[Hit]:
    for path, branch, type_ in _typed_branches(subject):
        all_values = finite_values(type_)
        wrong = any(_never_comes(subject, case, type_) for case in branch.cases)
        if branch.otherwise is not None or all_values is None or wrong or not branch.cases:
            continue
        met = {key_of(case.value) for case in branch.cases}
        left = [told("", value) for value in all_values if key_of(value) not in met]
        if left:
            fact = f"the branch {branch.name} has no case for {listed(left)}: the run fails then"
            yield Hit(path, fact, hint=("add the case, or say what is done otherwise",))


def _typed_branches(subject: Subject) -> Iterator[tuple[Path, spec.Branch, TypeExpr]]:
    conditions = {it.path: it.condition for it in tested(subject)}
    for path, branch in _branches(subject):
        condition = conditions[*path, "on"]
        if isinstance(condition, ExpressionError):
            continue
        found = type_at(subject, condition.name) if isinstance(condition, Name) else _BOOL
        if not isinstance(found, Lost):
            yield path, branch, found


@rule("FLOW027", "flow")
def retrieval_can_be_made(subject: Subject) -> Iterator[Hit]:
    for path, step, it in sources(subject):
        if not isinstance(it, spec.RetrievalIngredient):
            continue
        for key, fact, hint in _faults(it):
            place = (*path, *key) if key else path
            yield Hit(place, f"the retrieval of {step.name} {fact}", hint=(hint,))


def _faults(it: spec.RetrievalIngredient) -> Iterator[tuple[Path, str, str]]:
    has_text = bool(it.query and it.query.strip())
    if has_text == (it.query_path is not None):
        many = "two queries" if has_text else "no query"
        yield (), f"has {many}", "write query or query_path, and not both"
    if it.top_k < 1:
        yield ("top_k",), f"asks for {it.top_k} passages", "write 1 or more"
    if not 0 <= it.min_relevance <= 1:
        fact = f"wants a relevance of {it.min_relevance:g}, not of 0 to 1"
        yield ("min_relevance",), fact, "write a share such as 0.7"
    for index, one in enumerate(it.filters):
        if one.path is not None and one.value is not None:
            fact = f"filters {one.key} by a value and by a field"
            yield ("filters", index), fact, "write value or path, and not both"


@rule("FLOW028", "flow", "orchestrator")
def source_is_there(subject: Subject) -> Iterator[Hit]:
    own = subject.spec.orchestrator.workflow_name
    for path, step, it in sources(subject):
        if isinstance(it, spec.ArtifactsIngredient) and it.board == own:
            fact = f"the context of {step.name} reads the board of {own}, which is a flow"
            yield Hit((*path, "board"), fact, hint=("name a workflow that is a board",))
    for path, step in steps(subject):
        template = step.context.format.template if step.context else None
        if template is not None and "{context}" not in template:
            fact = f"the template of {step.name} has no place for the context"
            place = (*path, "context", "format", "template")
            yield Hit(place, fact, hint=("write {context} where the context belongs",))


@rule("FLOW029", "flow", "agents", "registry", "variables", "models")
def reply_sets_something(subject: Subject) -> Iterator[Hit]:
    fields = state_fields(subject)
    for path, step in steps(subject):
        work = step.work
        if not isinstance(work, spec.AgentWork) or work.output or work.step:
            continue
        model = bound_model(subject, work.agent)
        if work.agent not in subject.agents or (model and model not in subject.models):
            continue
        known = subject.models.get(model or "", {})
        if not model or not set(known).intersection(fields):
            what = f"no field of {model} is one of the state" if model else "it is free text"
            yield Hit(
                (*path, "work"),
                f"the reply of {work.agent} changes nothing in the state: {what}",
                hint=("say under output which field gets the reply",),
            )


@rule("NAME003", "flow", "agents")
def agent_has_a_step(subject: Subject) -> Iterator[Hit]:
    if not is_flow(subject):
        return
    works_of = (work.agent for _, _, work in works(subject) if isinstance(work, spec.AgentWork))
    busy = {agent_meant(subject, name) for name in works_of}
    for index, agent in enumerate(subject.spec.agents):
        if agent.agent_name not in busy:
            fact = f"{agent.agent_name} is never used: it does no step of the flow"
            place = ("agents", index, "agent_name")
            yield Hit(place, fact, hint=("let it do a step, or remove it",))


@rule("FLOW035", "flow", "agents", "registry", "variables", "models")
def what_is_set_fits(subject: Subject) -> Iterator[Hit]:
    for path, _, work in works(subject):
        if isinstance(work, spec.AgentWork) and work.output and work.agent in subject.agents:
            model = bound_model(subject, work.agent)
            wanted, given = ("object", f"a {model}") if model else ("text", "text")
            type_ = type_at(subject, work.output)
            if not isinstance(type_, Lost) and wanted not in kinds_of(type_):
                fact = f"{work.agent} replies with {given}, and {work.output} is"
                yield _unfit((*path, "output"), fact, type_)
    for path, it in approvals(subject):
        type_ = type_at(subject, it.output) if it.output else ANY
        unfit = [
            one.name
            for one in it.options
            if not isinstance(type_, Lost) and value_error(type_, one.name, subject.models)
        ]
        if unfit and not isinstance(type_, Lost):
            yield _unfit(
                (*path, "output"), f"{it.name} sets {listed(unfit)}, and {it.output} is", type_
            )


def _unfit(path: Path, fact: str, type_: TypeExpr) -> Hit:
    hint = "name another field, or change its type"
    return Hit(path, f"{fact} {short(print_type(type_))}", hint=(hint,))
