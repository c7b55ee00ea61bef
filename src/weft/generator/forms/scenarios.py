"""The scenarios of a plan as files for `weft test`: what people say, decide and must see.

Each is played on the plan: the outcomes in `takes` decide which agent follows. From that come the
replies of the models, the answers of people, and what must have happened in the package.
"""

from dataclasses import dataclass, field
from random import Random
from typing import Final, cast

from pydantic import ValidationError

from weft.adapters.models.sample_values import sample_value
from weft.check.problems import find_problems
from weft.engine.variables.conditions import decide
from weft.errors import UsageError
from weft.generator.compile.wiring import Turn, Wiring, wire
from weft.generator.plans.data_rules import start_fields
from weft.generator.plans.workflow_plan import WorkflowPlan
from weft.ids import TERMINATE, USER
from weft.packages.scenarios import scenario_text
from weft.runtime.tools.forms import APPROVAL, SERVICE
from weft.spec.condition_parser import parse_condition
from weft.spec.conditions import names as names_in
from weft.spec.form import ASK_USER
from weft.spec.part import JsonMap, JsonValue
from weft.spec.plan import PlannedScenario
from weft.spec.scenario import Scenario, ScenarioStep
from weft.spec.templates import references
from weft.spec.tools import UiTool
from weft.spec.type_meaning import NO_MODELS, Models, json_schema
from weft.spec.types import LiteralOf, OptionalOf, Scalar, TypeExpr
from weft.spec.variables import EnvironmentSource, ExternalSource, is_call
from weft.spec.workflow import WorkflowSpec

_MOST_TURNS: Final = 100
#: The keys of a mapping in `says` that are copied.
COPIED: Final = ("user", "values", "documents", "tools", "message", "input")
#: The keys of an expectation that are lists.
_LISTS: Final = ("route", "shown", "never_shown")
STEP_KEYS: Final = frozenset(each.alias or name for name, each in ScenarioStep.model_fields.items())


def scenario_files(
    workflow: WorkflowPlan, spec: WorkflowSpec
) -> tuple[dict[str, str], tuple[str, ...]]:
    """Return the scenarios of a plan as files, and notes on what could not be made a check."""
    files, notes, wiring = dict[str, str](), list[str](), wire(workflow)
    for number, planned in enumerate(workflow.strategy.scenarios, 1):
        name = f"scenario_{number}"
        said = " ".join(text for text in planned.says if isinstance(text, str))
        try:
            play = _Play(workflow, wiring, spec, planned, notes, name)
            case = _as_written(planned) or play.case()
            described: JsonMap = {"description": said or f"Scenario {number} of the plan."}
            scenario = Scenario.model_validate(described | case)
        except UsageError as error:
            notes.append(f"{name} is not run: {error}")
        except ValidationError as error:
            wrong = next(find_problems(error, Scenario))
            notes.append(f"{name} is not run: {'.'.join(map(str, wrong.path))}: {wrong.message}")
        else:
            files[f"tests/{name}.yaml"] = scenario_text(scenario, "From the plan.")
    return files, tuple(dict.fromkeys(notes))


def expectation(entry: JsonMap) -> JsonMap:
    """Return what a scenario expects, with a list where a single text stands for one."""
    return {
        name: [value] if name in _LISTS and isinstance(value, str) else value
        for name, value in entry.items()
    }


def _as_written(planned: PlannedScenario) -> JsonMap:
    """Return a case that the plan writes out, replies of models included; empty if it does not."""
    says = [entry for entry in planned.says if isinstance(entry, dict)]
    expect = [entry for entry in planned.expect if isinstance(entry, dict)]
    is_text = len(says) < len(planned.says) or len(expect) < len(planned.expect)
    if planned.takes or is_text or not any("replies" in entry for entry in says):
        return {}
    keys = [entry for entry in says if STEP_KEYS.isdisjoint(entry)]
    case = {name: value for entry in keys for name, value in entry.items()}
    steps: list[JsonValue] = [entry for entry in says if not STEP_KEYS.isdisjoint(entry)]
    expected = {name: value for entry in expect for name, value in expectation(entry).items()}
    return {**case, "steps": steps, "expect": expected}


@dataclass
class _Play:
    """One case of a scenario, played on the plan."""

    workflow: WorkflowPlan
    wiring: Wiring
    spec: WorkflowSpec
    planned: PlannedScenario
    notes: list[str]
    name: str
    #: What the plan writes out: keys of the case, and steps by the tool that they answer.
    given: JsonMap = field(default_factory=dict[str, JsonValue])
    written: dict[str, list[JsonMap]] = field(default_factory=dict[str, list[JsonMap]])
    #: The messages that the user has not said yet.
    said: list[str] = field(default_factory=list[str])
    replies: dict[str, list[JsonValue]] = field(default_factory=dict[str, list[JsonValue]])
    steps: list[JsonMap] = field(default_factory=list[JsonMap])
    route: list[str] = field(default_factory=list[str])
    requests: dict[str, str] = field(default_factory=dict[str, str])
    #: The values that conditions test.
    known: dict[str, object] = field(default_factory=dict[str, object])
    watched: bool = False

    def case(self) -> JsonMap:
        """Return the case in the keys of `tests/*.yaml`. Raises UsageError if it cannot be made."""
        self._read()
        found: JsonMap = {key: self.given[key] for key in COPIED if key in self.given}
        if addresses := self._addresses():
            found["values"] = addresses | _mapping(found.get("values"))
        fields = start_fields(self.workflow.strategy)
        if self.workflow.strategy.trigger == "chat":
            found["message"] = self._next_message() or "Hello"
        elif fields:
            brought: JsonMap = {each.name: _sample(each.value_type, each.name) for each in fields}
            found["input"] = brought | _mapping(self.given.get("input"))
            self.known |= brought | _mapping(self.given.get("input"))
        outcome = self._walk()
        expect: JsonMap = {"route": [*self.route], "requests": {**self.requests}}
        expect["outcome"] = outcome
        for entry in self.planned.expect:
            if isinstance(entry, str):
                self.notes.append(f'{self.name}: nothing checks "{entry}"; write a mapping')
            else:
                expect |= expectation(entry)
        found |= {"replies": {**self.replies}, "steps": [*self.steps], "expect": expect}
        if "then" in self.given:
            found["then"] = self._then(_mapping(self.given["then"]))
        return found

    def _then(self, then: JsonMap) -> JsonMap:
        """Return the case that follows, which may be written as in a plan."""
        if "says" not in then:
            return then
        planned = PlannedScenario.model_validate(then)
        again = _Play(self.workflow, self.wiring, self.spec, planned, self.notes, self.name)
        return again.case()

    def _read(self) -> None:
        """Sort what the plan says: texts, steps, and keys of the case."""
        for entry in self.planned.says:
            if isinstance(entry, str):
                self.said.append(entry)
            elif STEP_KEYS.isdisjoint(entry):
                self.given |= entry
            else:
                key = "cancel" if "cancel" in entry else "answer"
                turns = (each for each in self.wiring.turns if entry.get(key) in _names(each))
                turn = next(turns, None)
                tool = turn.tool if turn and turn.is_person else str(entry.get(key, ""))
                self.written.setdefault(tool, []).append({**entry, key: tool} if tool else entry)

    def _addresses(self) -> JsonMap:
        """Return a made-up value for each setting that an address of a service inserts."""
        sources = {name: each.source for name, each in self.spec.variables.items()}
        urls = [each.url for each in sources.values() if isinstance(each, ExternalSource)]
        named = [each.name for url in urls for each in references(url)]
        settings = (name for name in named if isinstance(sources.get(name), EnvironmentSource))
        return dict.fromkeys(settings, "https://service.example.com")

    def _next_message(self) -> str | None:
        text, watch = (self.said.pop(0) if self.said else None), self.workflow.strategy.watch
        for word in watch.words if text and watch else ():
            self.watched |= word.lower() in (text or "").lower()
        return text

    def _walk(self) -> str:
        """Follow the ways from agent to agent; return how the run ends."""
        turns = {turn.name: turn for turn in self.wiring.turns}
        groups = {group.name: group for group in self.wiring.groups}
        at, last = self.wiring.entry, ""
        for _ in range(_MOST_TURNS):
            if at == TERMINATE:
                return "completed"
            if at in groups:
                for member in groups[at].members:
                    self._reply(turns[member], None)
                    self.route.append(member)
                at = groups[at].next or TERMINATE
                continue
            if at == USER:
                text = self._next_message()
                if text is None:
                    return "waiting"
                self.steps.append({"say": text})
                at = last
            if self.watched:
                at = self.wiring.watch or at
            last, at = at, self._turn(turns[at])
        raise UsageError(f"it does not end within {_MOST_TURNS} turns: name more in takes")

    def _turn(self, turn: Turn) -> str:
        """Play one turn; return which agent follows."""
        if self.route[-1:] != [turn.name]:
            self.route.append(turn.name)
        outcome = self._outcome(turn)
        if turn.variable:
            self.known[turn.variable] = outcome
        self._reply(turn, outcome)
        for way in turn.ways:
            parsed = parse_condition(way.condition) if way.condition else None
            known = {name: self.known.get(name) for name in names_in(parsed)} if parsed else {}
            if parsed is None or decide(parsed, known) is True:
                self.watched &= turn.name != self.wiring.watch or way.target == USER
                return way.target
        return TERMINATE

    def _outcome(self, turn: Turn) -> str | None:
        """Return what a turn comes to: as the plan says, or one outcome after the other."""
        takes, before = self.planned.takes, self.replies.get(turn.name, ())
        taken = next((takes[key] for key in _names(turn) if key in takes), ())
        if len(before) < len(taken) and taken[len(before)] in turn.values:
            return taken[len(before)]
        if turn.asks and self.said and not taken:
            return ASK_USER
        decided = sum(ASK_USER not in _mapping(reply).values() for reply in before)
        outcome = turn.outcomes[min(decided, len(turn.outcomes) - 1)] if turn.outcomes else None
        if len(turn.outcomes) > 1:
            self.notes.append(f"{self.name}: {turn.name} is assumed to come to {outcome}")
        return outcome

    def _reply(self, turn: Turn, outcome: str | None) -> None:
        """Note what the model of an agent replies, and what people answer in its turn."""
        replies, listed = (
            self.replies.setdefault(turn.name, []),
            _mapping(self.given.get("replies")),
        )
        given = next((listed[key] for key in _names(turn) if key in listed), None)
        left = cast("list[JsonValue]", given)[len(replies) :] if isinstance(given, list) else []
        if left and not isinstance(left[0], dict):
            replies.append(left[0])
            return
        for question in turn.questions if outcome != ASK_USER else ():
            if question.name not in self.requests:
                replies.append([{question.name: {"briefing": "[sample] briefing"}}])
                self._answer(turn, question.name, None)
        fields = self._fields(turn, None if turn.is_person else outcome)
        fields |= _mapping(left[0]) if left else {}
        replies.append(fields or "[sample] done")
        self.known |= {name: value for name, value in fields.items() if value is not None}
        if turn.is_person:
            self._answer(turn, turn.tool, outcome)
        for name in turn.agent.writes if outcome != ASK_USER else ():
            variable = self.spec.variables.get(name)
            source = variable.source if variable else None
            if (
                isinstance(source, ExternalSource)
                and is_call(source)
                and source.approval == "write"
            ):
                asked = f"{APPROVAL}:{SERVICE}{name}"
                self.steps.append({"answer": asked, "value": {"approved": True}})
                self.requests[asked] = USER

    def _fields(self, turn: Turn, outcome: str | None) -> JsonMap:
        """Return a structured reply of an agent that means an outcome."""
        bound = {each.agent: each.model for each in self.spec.registry}
        models = {each.name: each.fields for each in self.spec.models}
        fields = models.get(bound.get(turn.name) or "", {})
        known = {
            name: {key: each.type for key, each in model.items()} for name, model in models.items()
        }
        reply = {name: _sample(each.type, name, known) for name, each in fields.items()}
        if outcome == ASK_USER:
            reply |= {name: None for name, each in fields.items() if _is_optional(each.type)}
        if outcome is None:
            return reply
        for name, each in fields.items():
            inner = _inner(each.type)
            if isinstance(inner, LiteralOf) and outcome in inner.values:
                return {**reply, name: outcome}
        raise UsageError(f"no field of the reply of {turn.name} can be {outcome}")

    def _answer(self, turn: Turn, name: str, outcome: str | None) -> None:
        """Note what a person answers; where the plan names one, that the user is refused."""
        found = (
            each for each in self.spec.tools if (each.agent, each.function) == (turn.name, name)
        )
        tool = next(found, None)
        if not isinstance(tool, UiTool):
            raise UsageError(f"{turn.name} has no UI tool {name}")
        value, key = _answer_value(tool.response_schema or {"type": "object"}, outcome)
        person = turn.asked_by(name)
        as_: JsonMap = {"as": person} if person else {}
        if person:
            self.steps.append({"answer": name, "value": value, "refused": True})
        is_answered = False
        for step in self.written.pop(name, []):
            given = step.get("value")
            more = given if isinstance(given, dict) else {} if given is None else {key: given}
            whole: JsonMap = {"value": value | more} if "answer" in step else {}
            is_refused = step.get("refused") is True
            is_answered |= not is_refused
            self.steps.append({**({} if is_refused else as_), **step, **whole})
        if not is_answered:
            self.steps.append({"answer": name, "value": value, **as_})
        self.requests[name] = person or USER
        answer = _mapping(self.steps[-1].get("value"))
        self.known |= answer
        if turn.variable and turn.tool == name and key in answer:
            self.known[turn.variable] = answer[key]


def _names(turn: Turn) -> tuple[str, ...]:
    """Return the names by which a scenario may call a turn."""
    return turn.name, turn.module.purpose


def _mapping(value: JsonValue) -> JsonMap:
    return value if isinstance(value, dict) else {}


def _is_optional(type_: TypeExpr) -> bool:
    return isinstance(type_, OptionalOf)


def _inner(type_: TypeExpr) -> TypeExpr:
    return type_.of if isinstance(type_, OptionalOf) else type_


def _sample(type_: TypeExpr, name: str, models: Models = NO_MODELS) -> JsonValue:
    inner = _inner(type_)
    if inner == Scalar("str"):
        return f"[sample] {name}"
    return cast("JsonValue", sample_value(json_schema(inner, models), Random(0)))  # noqa: S311


def _answer_value(schema: JsonMap, outcome: str | None) -> tuple[JsonMap, str]:
    """Return an answer that fits a schema and means an outcome, and the field that says so."""
    value = cast("JsonMap", sample_value(schema, Random(0)))  # noqa: S311
    for name, each in _mapping(schema.get("properties")).items():
        listed = _mapping(each).get("enum")
        if isinstance(listed, list) and outcome in listed:
            return {**value, name: outcome}, name
    if outcome:
        raise UsageError(f"no field of the answer can be {outcome}")
    return value, "answer"
