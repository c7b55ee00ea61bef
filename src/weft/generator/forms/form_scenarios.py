"""What is wrong with the scenarios of a form: unknown keys, wrong shapes, and other people."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

from pydantic import ValidationError
from pydantic_core import to_json

from weft.check.problems import find_problems
from weft.findings import Path
from weft.generator.forms.scenarios import COPIED, STEP_KEYS, expectation
from weft.generator.values import mapping
from weft.ids import suggestion
from weft.runtime.tools.forms import APPROVAL
from weft.spec.form import FormScenario
from weft.spec.part import JsonMap, JsonValue, Part
from weft.spec.scenario import ANY_TURNS, Expected, Scenario, ScenarioCase, ScenarioStep

Faults: TypeAlias = Iterator[tuple[Path, str, str]]
_P = TypeVar("_P", bound=Part)
_CASE_KEYS = (*COPIED, "replies", "then")


@dataclass(frozen=True)
class Known:
    """The names of a form that its scenarios may use."""

    #: By step: the name of its agent.
    agents: Mapping[str, str]
    #: By tool that asks: whom.
    asked: Mapping[str, str]
    #: By step that asks: its tool.
    tools: Mapping[str, str]


def scenario_faults(scenario: FormScenario, known: Known) -> Faults:
    """Yield what is wrong with what people say in a scenario, and with what it expects."""
    for place, entry in enumerate(scenario.says):
        for path, message, hint in _said(entry, known) if isinstance(entry, dict) else ():
            yield ("says", place, *path), message, hint
    for place, entry in enumerate(scenario.expect):
        for path, message, hint in _expected(entry, known) if isinstance(entry, dict) else ():
            yield ("expect", place, *path), message, hint


def _said(entry: JsonMap, known: Known) -> Faults:
    unknown = [key for key in entry if key not in (*_CASE_KEYS, *STEP_KEYS)]
    for key in unknown:
        near = suggestion(key, (*_CASE_KEYS, *sorted(STEP_KEYS)))
        yield (key,), f'unknown key "{key}"', near
    if unknown:
        return
    if not STEP_KEYS.isdisjoint(entry):
        _, faults = _validated(entry, ScenarioStep)
        yield from faults
        for key in {"answer", "cancel"} & entry.keys():
            name = str(entry[key])
            if not name.startswith(APPROVAL):
                yield from _unknown((key,), "step that asks", name, (*known.tools, *known.asked))
        return
    case = {key: value for key, value in entry.items() if key != "then"}
    _, faults = _validated(case, Scenario)
    yield from faults
    named = (*known.agents, *known.agents.values())
    for name in mapping(entry.get("replies")):
        yield from _unknown(("replies", name), "step", name, named)
    if "then" in entry:
        yield from _then(entry["then"], known)


def _then(value: JsonValue, known: Known) -> Faults:
    as_scenario = not {"says", "takes"}.isdisjoint(mapping(value))
    found, faults = _validated(value, FormScenario if as_scenario else ScenarioCase)
    inner = scenario_faults(found, known) if isinstance(found, FormScenario) else ()
    for path, message, hint in (*faults, *inner):
        yield ("then", *path), message, hint


def _expected(entry: JsonMap, known: Known) -> Faults:
    expected, faults = _validated(expectation(entry), Expected)
    yield from faults
    if expected is None:
        return
    for name in expected.route or ():
        yield from _unknown(("route",), "agent", name, (*known.agents.values(), ANY_TURNS))
    for tool, asked in (expected.requests or {}).items():
        path = ("requests", tool)
        if tool in known.asked and asked != known.asked[tool]:
            message = f"{tool} asks {known.asked[tool]}; the scenario expects {asked}"
            yield path, message, f"write {known.asked[tool]}"
        elif not tool.startswith(APPROVAL):
            yield from _unknown(path, "request", tool, [*known.asked])


def _validated(value: JsonValue, model: type[_P]) -> tuple[_P | None, list[tuple[Path, str, str]]]:
    try:
        return model.model_validate_json(to_json(value), strict=True), []
    except ValidationError as error:
        problems = find_problems(error, model)
        return None, [(each.path, each.message, "; ".join(each.hint)) for each in problems]


def _unknown(path: Path, what: str, name: str, names: Collection[str]) -> Faults:
    if name not in names:
        yield path, f"there is no {what} {name}", suggestion(name, names)
