"""Makes a scenario of a recorded run: the messages, answers and replies, and the result."""

import json
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import Any, Final, TypeAlias, cast

from pydantic_core import from_json

from weft.adapters.models.provider_errors import as_object
from weft.adapters.models.sample_values import put_at
from weft.app.scenarios import RunFacts, request_name
from weft.engine import events as kinds
from weft.engine.events import EDIT
from weft.errors import UsageError
from weft.findings import Json
from weft.inspect.variables import is_secret
from weft.packages.scenarios import scenario_text
from weft.spec import variables as sources
from weft.spec.scenario import Scenario

#: The longest value that is expected, as JSON.
_LONGEST: Final = 2000

#: Plays the text of a scenario; returns the result as JSON.
Play: TypeAlias = Callable[[str], Awaitable[Mapping[str, Any]]]
_Lists: TypeAlias = dict[str, list[Json]]


async def save_scenario(facts: RunFacts, play: Play) -> tuple[str, list[str]]:
    """Return the text of the scenario of a run, and variables that it leaves out: they differ.

    It was played and passes; raises UsageError if the run does not go the same way again.
    """
    run, events = facts.row.run, [event.data for event in facts.events]
    if facts.row.status == "running":
        raise UsageError(f"run {run} is running", hint="wait until it waits or has ended")
    if any(isinstance(event, kinds.VariableSet) and event.writer == EDIT for event in events):
        raise UsageError(f"run {run} is a fork with other values", hint="save its parent")
    data, volatile = _recorded(facts), list[str]()
    comment = f"Saved from run {run}. Tools listed under `tools` are not called."
    result = await play(scenario_text(Scenario.model_validate(data), comment))
    for finding in result["findings"]:
        *above, name = finding["path"] or [""]
        if above != ["expect", "variables"]:
            message = f"run {run} cannot be saved, as it goes otherwise: {finding['message']}"
            raise UsageError(message, hint="; ".join(finding["cause"]))
        volatile.append(name)
        del data["expect"]["variables"][name]
    return scenario_text(Scenario.model_validate(data), comment), volatile


def _recorded(facts: RunFacts) -> dict[str, Any]:
    """Return the data of the scenario of a run."""
    workflow, events = facts.workflow, [event.data for event in facts.events]
    begun = cast("kinds.RunStarted", events[0])
    written = [event for event in events if isinstance(event, kinds.VariableSet)]
    changed = {event.name for event in written if not event.writer.startswith("source:")}
    published = defaultdict[str, list[Json]](list)
    for event in facts.events:
        if isinstance(event.data, kinds.ArtifactPublished) and event.actor.startswith("user:"):
            published[event.data.type].append(event.data.payload)
    steps = list(_steps(facts))
    documents, services = _outside(facts)
    return {
        "user": facts.row.user,
        # The message answers the first question.
        "message": steps.pop(0)["say"] if begun.with_message else None,
        "input": dict(published) or begun.input,
        "values": {**dict(_start_values(facts, begun)), **services},
        "documents": documents,
        "tools": _results(facts),
        "replies": _replies(facts),
        "steps": steps,
        "expect": {
            "route": facts.route,
            "variables": {
                name: value
                for name, value in facts.variables.items()
                if (name in changed or workflow.spec.board) and not is_secret(workflow, name)
                if len(json.dumps(value)) <= _LONGEST
            },
            "requests": facts.requests,
            "outcome": facts.outcome,
        },
    }


def _start_values(facts: RunFacts, begun: kinds.RunStarted) -> Iterator[tuple[str, Json]]:
    """Yield the values of the start that are not defaults and did not come with the input."""
    for name, value in begun.values.items():
        source = facts.workflow.spec.variables[name].source
        if isinstance(source, sources.DerivedSource | sources.EnvironmentSource):
            known = (source.default, (begun.input or {}).get(name))
            if value not in known and not is_secret(facts.workflow, name):
                yield name, value


def _outside(facts: RunFacts) -> tuple[_Lists, dict[str, Json]]:
    """Return the documents by collection and the values of services, as they were read first."""
    values: dict[str, Json] = {}
    notes: dict[str, Json] = {}
    documents: dict[tuple[str, str, int], dict[str, Json]] = {}
    services: dict[str, Json] = {}
    for event in (event.data for event in facts.events):
        if isinstance(event, kinds.VariableSet):
            values[event.name] = event.value
        found = event.found if isinstance(event, kinds.ContextFetched) else {}
        for name in found.keys() - notes.keys():
            notes[name] = note = as_object(found[name]) or {}
            source, value = facts.workflow.spec.variables[name].source, values.get(name)
            if isinstance(source, sources.ExternalSource):
                services[name] = value
            if (
                not isinstance(source, sources.DatabaseSource | sources.EntitySource)
                or "found" in note
            ):
                continue
            query = as_object(note["query"]) or {}
            field = source.field if isinstance(source, sources.DatabaseSource) else None
            # Of many documents, the newest come first.
            items = cast("list[Json]", value)[::-1] if "count" in note else [value]
            for number, item in enumerate(items):
                place = (source.collection, json.dumps(query), number)
                parts = {field: item} if field else as_object(item) or {}
                paths = tuple((tuple(key.split(".")), part) for key, part in parts.items())
                put_at(documents.setdefault(place, dict(query)), paths)
    collections = defaultdict[str, list[Json]](list)
    for (collection, _, _), document in documents.items():
        collections[collection].append(document)
    return dict(collections), services


def _results(facts: RunFacts) -> _Lists:
    """Return the results of the tools that do nothing else: no questions, no variables set."""
    calls: dict[str, str] = {}
    results = defaultdict[str, list[Json]](list)
    others: set[str] = set()
    for event in (event.data for event in facts.events):
        match event:
            case kinds.ToolCalled(id=call, tool=tool, hook=None):
                calls[call] = tool
            case kinds.ToolReturned(id=call, value=value) if call in calls:
                results[calls[call]].append(value)
            case kinds.VariableSet(writer=writer):
                others.add(writer.removeprefix("tool:"))
            case kinds.ToolFailed(id=call) | kinds.RequestOpened(call=str(call)):
                others.add(calls.get(call, ""))
            case kinds.ModelConsulted(call=call) | kinds.SurfaceShown(call=call):
                others.add(calls.get(call, ""))
            case _:
                pass
    return {tool: values for tool, values in results.items() if tool not in others}


def _replies(facts: RunFacts) -> _Lists:
    """Return the replies of the models by role, in their order."""
    replies = defaultdict[str, list[Json]](list)
    roles: dict[int, str] = {}
    for event in facts.events:
        match event.data:
            case kinds.ContextAssembled(agent=role):
                roles[event.seq] = roles[-event.turn] = role
            case kinds.ModelReplied(text=text, tool_requests=requests):
                calls: list[Json] = [{call.tool: call.arguments} for call in requests]
                reply = [*([text] if text else []), *calls] if calls else _structured(text)
                replies[roles[event.cause]].append(reply)
            case kinds.ModelFailed():
                replies[roles[event.cause]].append(None)
            case kinds.ConditionJudged(text=text, scores=scores) if not scores:
                judged = _structured(text) if text else None
                replies[event.actor.removeprefix("agent:")].append(judged)
            case kinds.ModelConsulted(text=text):
                replies[roles[-event.turn]].append(_structured(text))
            case _:
                pass
    return dict(replies)


def _structured(text: str) -> Json:
    """Return a reply that is a JSON object as such."""
    try:
        return as_object(from_json(text)) or text
    except ValueError:
        return text


def _steps(facts: RunFacts) -> Iterator[dict[str, Json]]:
    """Yield what people did, and the times that passed while they were asked."""
    asked: dict[str, str] = {}
    #: When questions and timers are due, in seconds of the scenario, in which time stands still.
    due: dict[str, float] = {}
    now = 0.0
    for event in facts.events:
        match event.data:
            case kinds.RequestOpened(id=request, tool=tool, expires_at=at):
                asked[request] = request_name(tool)
                due[request] = now + ((at or event.at) - event.at) / 1000
            case kinds.TimerSet(id=timer, at=at):
                due[timer] = now + (at - event.at) / 1000
            case kinds.RequestAnswered(id=request, value=value, user=user, role=role):
                tool = asked.pop(request)
                who = {"as": role or f"user:{user}"} if role or user != facts.row.user else {}
                yield {"answer": tool, "value": value, **who} if tool else {"say": value}
            case kinds.RequestExpired(id=request) if event.actor.startswith("user:"):
                yield {"cancel": asked.pop(request), "as": event.actor}
            case kinds.RequestExpired(id=timer) | kinds.TimerFired(id=timer):
                later = due.get(timer, now)
                if later > now and asked:
                    yield {"wait": later - now}
                now = max(now, later)
                asked.pop(timer, None)
            case kinds.StopRequested(mode=mode):
                yield {"stop": mode}
            case _:
                pass
