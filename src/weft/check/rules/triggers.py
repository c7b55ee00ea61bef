"""Family VAR, second part: whether the events that set a variable can happen."""

from collections.abc import Iterator

from pydantic import ValidationError

from weft.check.code.facts import function_at
from weft.check.declarations import (
    PlacedTrigger,
    bound_model,
    of_plugins,
    placed_triggers,
    serving,
    taking_key,
)
from weft.check.explore.happenings import automatic_calls
from weft.check.rules.code import functions_meant
from weft.check.rules.references import Reference, unknown_name
from weft.check.spelling import did_you_mean, short
from weft.check.subject import Hit, Subject, rule
from weft.check.texts import places_of
from weft.engine.variables.conditions import same
from weft.engine.variables.patterns import pattern
from weft.errors import ExpressionError
from weft.spec.agents import Agent
from weft.spec.tools import UiTool
from weft.spec.triggers import (
    CUSTOM,
    AgentTextTrigger,
    BringsValue,
    Contains,
    Equals,
    Exact,
    Match,
    Regex,
    ToolCallTrigger,
    ToolResponseTrigger,
    UiResponseTrigger,
    UserTextTrigger,
)


@rule("VAR008", "variables", "tools")
def answered_tool_asks(subject: Subject) -> Iterator[Hit]:
    asking = {tool.function for tool in subject.spec.tools if isinstance(tool, UiTool)}
    for placed in placed_triggers(subject):
        trigger = placed.trigger
        if not isinstance(trigger, UiResponseTrigger) or trigger.tool in asking:
            continue
        declared = trigger.tool in subject.tools or serving(subject, trigger.tool)
        if declared and trigger.tool not in subject.once(functions_meant):
            yield Hit(
                (*placed.path, "tool"),
                f"a trigger of {placed.variable} waits for an answer to {trigger.tool}, "
                "which is not a UI tool",
                hint=('use the trigger "tool_response"', 'or declare the tool as "UI_Tool"'),
            )


@rule("VAR009", "variables")
def regex_is_usable(subject: Subject) -> Iterator[Hit]:
    for placed in placed_triggers(subject):
        match = _match_of(placed)
        if not isinstance(match, Regex):
            continue
        try:
            pattern(match.regex)
        except ExpressionError as fault:
            yield Hit(
                (*placed.path, "match", "regex"),
                f"a regular expression of {placed.variable} cannot be used: {fault}",
                hint=(fault.hint or "",),
                offset=fault.offset,
            )


def _match_of(placed: PlacedTrigger) -> Match | None:
    trigger = placed.trigger
    return trigger.match if isinstance(trigger, AgentTextTrigger | UserTextTrigger) else None


@rule("VAR010", "variables", "agents")
def agent_is_told_to_say_it(subject: Subject) -> Iterator[Hit]:
    for placed in placed_triggers(subject):
        trigger = placed.trigger
        if not isinstance(trigger, AgentTextTrigger) or trigger.agent not in subject.agents:
            continue
        key, text = _text_of(trigger.match)
        if text and not _mentions(subject.agents[trigger.agent], key, text.strip()):
            yield Hit(
                (*placed.path, "match", key),
                f"{placed.variable} waits for {trigger.agent} to say "
                f'"{short(" ".join(text.split()))}", '
                "but its prompt does not mention it",
                hint=(f"tell {trigger.agent} in its prompt when to say it",),
            )


def _text_of(match: Match) -> tuple[str, str]:
    """Return the key and the text of a match; a pattern cannot be searched for in a prompt."""
    match match:
        case Equals(equals=text):
            return "equals", text
        case Exact(exact=text):
            return "exact", text
        case Contains(contains=text):
            return "contains", text
        case _:
            return "regex", ""


def _mentions(agent: Agent, key: str, text: str) -> bool:
    """Return whether the agent's instructions contain the text as whole words, as matched."""
    parts = [
        part for section in agent.prompt_sections for part in (section.heading, section.content)
    ]
    prompt = "\n".join(part for part in parts if part)
    if key != "exact":
        text, prompt = text.casefold(), prompt.casefold()
    return any(True for _ in places_of(text, prompt))


@rule("VAR014", "variables")
def trigger_sets_one_value(subject: Subject) -> Iterator[Hit]:
    for placed in placed_triggers(subject):
        other = _other_value(placed)
        if other:
            yield Hit(
                (*placed.path, "value"),
                f'a trigger of {placed.variable} has a "value" that is never used: '
                f"the value comes from {other}",
                hint=('remove "value"', f"or remove {other}"),
            )


def _other_value(placed: PlacedTrigger) -> str | None:
    """Return what sets the value instead of the written one."""
    trigger, transition = placed.trigger, placed.transition
    if isinstance(trigger, BringsValue) or trigger.value is True:
        return None
    key = taking_key(trigger)
    if key:
        return f'"{key}"'
    if transition and not same(transition.to, trigger.value):
        return '"to" of its transition'
    return None


@rule("NAME001", "variables", "tools", "agents", "models", "registry", "code", affects_routes=False)
def argument_exists(subject: Subject) -> Iterator[Hit]:
    for placed in placed_triggers(subject):
        trigger = placed.trigger
        if not isinstance(trigger, ToolCallTrigger | ToolResponseTrigger) or not trigger.argument:
            continue
        known = _arguments(subject, trigger.tool)
        if known is not None and trigger.argument not in known:
            what = f"a trigger of {placed.variable} takes"
            path = (*placed.path, "argument")
            reference = Reference(path, "", trigger.argument, what)
            hint = f"{trigger.tool} takes {', '.join(known) or 'no arguments'}"
            yield unknown_name(reference, f"argument of {trigger.tool}", known, hint)


def _arguments(subject: Subject, name: str) -> tuple[str, ...] | None:
    """Return the parameters of a tool; None if unknown or if it accepts any argument."""
    files = {tool.file for tool in subject.spec.tools if tool.function == name}
    # NAME002 reports one name in two files.
    function = function_at(subject, "tools", files.pop(), name) if len(files) == 1 else None
    if function is None or function.decorated:
        return None
    if any(parameter.kind == "kwargs" for parameter in function.parameters):
        return None
    named = [
        parameter.name
        for parameter in function.parameters
        if parameter.kind != "args" and not parameter.injected
    ]
    # A reply that calls the tool has all its fields, also those that the tool does not accept.
    brought = [
        field
        for agent, tool in automatic_calls(subject)
        if tool == name
        for field in subject.models.get(bound_model(subject, agent) or "", ())
    ]
    return tuple(dict.fromkeys((*named, *brought)))


@rule("VAR027", "variables")
def settings_fit_their_kind(subject: Subject) -> Iterator[Hit]:
    # LINK003 reports kinds that no plug-in adds.
    for placed, trigger in of_plugins(subject):
        model = subject.kinds[trigger.name].settings
        try:
            model.model_validate(trigger.settings)
        except ValidationError as error:
            for fault in error.errors(include_url=False):
                key = str(fault["loc"][0]) if fault["loc"] else ""
                written = key in trigger.settings
                unknown = fault["type"] == "extra_forbidden"
                yield Hit(
                    (*placed.path, key) if written else placed.path,
                    f"the trigger {CUSTOM}{trigger.name} of {placed.variable} does not fit: "
                    f"{'.'.join(map(str, fault['loc'])) or 'settings'}: {fault['msg']}",
                    hint=(did_you_mean(key, model.model_fields) if unknown else ())
                    or (f"it takes {', '.join(model.model_fields) or 'nothing'}",),
                )
