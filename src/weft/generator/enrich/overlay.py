"""What a model made of one part of a package, put over the plain version as far as it passes."""

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Final, cast

from weft.check.declarations import placed_triggers
from weft.check.subject import Subject
from weft.findings import Json
from weft.generator.draft import Draft, Replaced
from weft.generator.enrich.comparing import (
    LEFT_OUT,
    NO_PART,
    Comparison,
    Place,
    as_object,
    same,
    says_nothing,
)
from weft.generator.enrich.files import LISTED, overlay_files
from weft.generator.enrich.texts import DESCRIPTION, MESSAGE, PROMPT, TOOL, text_faults
from weft.generator.outputs import output_of
from weft.spec.templates import references
from weft.spec.triggers import AgentTextTrigger
from weft.spec.workflow import WorkflowSpec

_TextCheck = Callable[[str], list[str]]
#: How the steps of a prompt are numbered, which a model may do anew.
_NUMBER: Final = re.compile(r"^\s*(?:\d+[.)]|[-*])\s*")

#: Where the part of an agent stands in a spec: the path in its output, then the field.
_PARTS: Final[Mapping[str, tuple[tuple[Place, str], ...]]] = {
    "ToolsManagerAgent": ((("tools",), "tools"), (("lifecycle_tools",), "lifecycle_tools")),
    "ContextVariablesAgent": (
        (("ContextVariablesPlan", "definitions"), "variables"),
        (("ContextVariablesPlan", "agents"), "exposure"),
    ),
    "HandoffsAgent": ((("handoff_rules",), "handoffs"),),
    "StructuredOutputsAgent": ((("models",), "models"), (("registry",), "registry")),
    "AgentsAgent": ((("agents",), "agents"),),
    "OrchestratorAgent": (((), "orchestrator"),),
}
#: Its one text is said in the chat, and stands in no file.
_TALKS: Final = frozenset({"DownloadAgent"})


def overlay(
    draft: Draft, agent: str, output: Mapping[str, Json]
) -> tuple[Draft, tuple[Replaced, ...]]:
    """Put what a model returned for an agent into a draft, as far as it passes its checks.

    Free texts and code may change; names and structure are those of the draft. All else that
    differs is reported. Whatever the model returned, nothing is raised and nothing of it is run.
    """
    if agent in _TALKS:
        return draft, ()
    given = as_object(cast("Json", output))
    if given is None:
        return draft, (Replaced(agent, "the whole reply", "it is no object"),)
    if agent in LISTED:
        return overlay_files(draft, agent, given.get(LISTED[agent]))
    if agent not in _PARTS:
        return draft, (Replaced(agent, "the whole reply", "no such agent makes a part"),)
    comparison = Comparison(agent, partial(_free, draft.spec, agent))
    plain = cast("dict[str, Json]", draft.spec.model_dump(mode="json", by_alias=True))
    reported = output_of(agent, draft)
    if agent == "OrchestratorAgent":
        # What follows from a setting that is left open is reported, and nothing new.
        given = {key: it for key, it in given.items() if not same(reported.get(key), it)}
    merged = dict(plain)
    for path, field in _PARTS[agent]:
        found = _at(given, path)
        if field == "variables":
            found = _without_sources(plain[field], _at(reported, path), found)
        if found is None and plain[field]:
            comparison.report(".".join(path), LEFT_OUT)
        merged[field] = comparison.merged(plain[field], found, path)
    known = {path[0] for path, _ in _PARTS[agent] if path}
    for key in given if known else ():
        if key not in known:
            comparison.report(str(key), NO_PART)
    spec = draft.spec if merged == plain else WorkflowSpec.model_validate(merged)
    return replace(draft, spec=spec), tuple(comparison.replaced)


def _without_sources(plain: Json, reported: Json, given: Json) -> Json:
    """Return definitions without what is said of sources as it was reported or as it stands.

    Plans have words of their own for kinds and settings, which a spec does not know.
    """
    definitions = as_object(given)
    if definitions is None:
        return given
    made: dict[str, Json] = {}
    for name, it in definitions.items():
        fields = as_object(it)
        source = as_object(fields.get("source")) if fields else None
        if not fields or source is None:
            made[name] = it
            continue
        known = [as_object(_at(whole, (name, "source"))) or {} for whole in (plain, reported)]
        new = {
            key: value
            for key, value in source.items()
            if not says_nothing(value) and not any(same(one.get(key), value) for one in known)
        }
        made[name] = {**fields, "source": new or None}
    return made


def _at(output: Json, path: Place) -> Json:
    for step in path:
        fields = as_object(output)
        output = fields.get(step) if fields is not None else None
    return output


def _free(spec: WorkflowSpec, agent: str, place: Place) -> _TextCheck | None:
    """Return the check of the texts at a place; None where no text is free."""
    match agent, place:
        case "AgentsAgent", ("agents", name, "prompt_sections", section, "content"):
            return partial(_prompt_faults, spec, name, section)
        case "AgentsAgent", ("agents", _, "description"):
            return _described(DESCRIPTION)
        case "ToolsManagerAgent", (_, _, "description"):
            return _described(TOOL)
        case "ContextVariablesAgent", (_, "definitions", _, "description"):
            return _described(DESCRIPTION)
        case "StructuredOutputsAgent", ("models", *_, "description"):
            return _described(DESCRIPTION)
        case "OrchestratorAgent", ("description" | "initial_message_to_user",):
            return _described(MESSAGE)
        case _:
            return None


def _described(longest: int) -> _TextCheck:
    return lambda text: text_faults(text, (), longest)


def _prompt_faults(spec: WorkflowSpec, agent: str, section: str, text: str) -> list[str]:
    own = next((it for it in spec.agents if it.agent_name == agent), None)
    sections = own.prompt_sections if own else ()
    plain = "\n".join(it.content for it in sections if it.id == section)
    # What comes from the environment is not there in production: prompts do without it.
    known = (it for it in spec.exposure.get(agent, ()) if it in spec.variables)
    lasting = (it for it in known if spec.variables[it].source.type != "environment")
    shown = {*lasting, *(it.name for it in references(plain))}
    signals = {*_signals(spec, agent)}
    needed = [_NUMBER.sub("", line).strip() for line in plain.splitlines() if _has(line, signals)]
    lost = [it for it in needed if it not in text]
    faults = [f"it leaves out what routing rests on: {it[:80]}" for it in lost]
    return [*text_faults(text, shown, PROMPT), *faults]


def _has(line: str, signals: Collection[str]) -> bool:
    return any(re.search(rf"(?<!\w){re.escape(it)}(?!\w)", line) for it in signals)


def _signals(spec: WorkflowSpec, agent: str) -> Iterator[str]:
    """Yield what an agent must be told: its tools, words that route, the fields of its reply."""
    yield from (it.function for it in spec.tools if it.agent == agent)
    for placed in placed_triggers(Subject(spec)):
        if isinstance(placed.trigger, AgentTextTrigger) and placed.trigger.agent == agent:
            yield from (str(it) for it in placed.trigger.match.model_dump().values())
    bound = {it.model for it in spec.registry if it.agent == agent}
    yield from (name for it in spec.models if it.name in bound for name in it.fields)
