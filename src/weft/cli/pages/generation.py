"""A generation as text: one line per agent, who made which part, and the plan."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from itertools import zip_longest
from typing import Any, Final, cast

from weft.app.generation import DOWNLOAD, INTERVIEW, Generation, PartOrigin, Round
from weft.app.promotion import Change
from weft.cli.streams import Streams, clean, clean_lines, counted, folded
from weft.engine import events
from weft.engine.events import Event
from weft.findings import Json
from weft.generator.forms.skeleton import open_places
from weft.generator.plans.diagram import plan_drawing
from weft.generator.plans.plan import plan_lines
from weft.generator.steps import STEP_OF
from weft.ports.live import Delta, ToolProgress
from weft.runtime.workflow import Workflow

#: The width of the longest agent name.
_NAMES: Final = max(map(len, STEP_OF))

#: The fields of the interview that are printed; all of them may be assumed.
_ASSUMED: Final = {
    "started_by": "started by",
    "approver": "approved by",
    "integrations": "services",
    "specialists": "specialists",
}

#: The lists of an offer by their keys, in the order in which they are shown.
SHOWN: Final = {
    "skeleton": "skeleton",
    "left_out": "left out",
    "errors": "error",
    "questions": "differs from the plan",
    "checked": "checked",
}

#: The greatest number of lines that one line of a plan is wrapped to.
_MOST: Final = 60

#: The length of a hash in a line.
_SHORT: Final = 12


class StepDone(Exception):
    """The step of --until is done."""


class ProgressView:
    """Shows a generation: one line per finished agent, and every retry."""

    def __init__(self, streams: Streams, workflow: Workflow, *, until: str = "") -> None:
        self._streams = streams
        self._agents = {tool.function: tool.agent for tool in workflow.spec.tools}
        #: The agent whose handoff ends it.
        self._until = until
        #: The last message, which a person must know who is asked for a reply.
        self.words = ""
        self._instead_of = ""
        self._agent = ""

    def show(self, item: Event | Delta) -> None:
        """Show an item; raises StepDone after the step of --until."""
        if isinstance(item, ToolProgress):
            self._streams.status(f"{item.tool}: {item.text}")
        if not isinstance(item, Event):
            return
        match item.data:
            case events.ModelReplied() as data:
                self._replied(item.actor.removeprefix("agent:"), data)
            case events.TurnStarted(agent=agent):
                self._agent = agent
            case events.OutputRefused(error=fault):
                self._line(self._agent, f"tries again: {fault}")
            case events.ToolReturned() | events.ToolFailed():
                self._ended(item.actor.removeprefix("tool:"), item.data)
            case events.TurnFailed(agent=agent, error=error):
                self._line(agent, f"failed: {error}")
            case events.RequestOpened(tool=tool, payload=payload) if tool == DOWNLOAD:
                self._show_checks(cast("dict[str, Any]", payload))
            case events.MessageShown(text=text):
                self.words = text
            case events.HandedOff(source=source, target=target):
                if source == self._until and target in STEP_OF:
                    raise StepDone
            case _:
                pass

    def _ended(self, tool: str, data: events.ToolReturned | events.ToolFailed) -> None:
        agent = self._agents.get(tool, tool)
        if isinstance(data, events.ToolReturned):
            self._line(agent, made_text(tool, data.value))
        elif data.kind == "retry":
            self._line(agent, f"tries again: {data.error}")

    def _replied(self, agent: str, data: events.ModelReplied) -> None:
        self.words = f"{agent}: {data.text}" if data.text.strip() else ""
        if data.instead_of and data.instead_of != self._instead_of:
            self._line(agent, f"{data.answerer} in place of {data.instead_of}")
        self._instead_of = data.instead_of

    def _show_checks(self, payload: Mapping[str, Any]) -> None:
        """Show the results of the checks of the offered packages."""
        for key, label in SHOWN.items():
            for line in payload.get(key) or ():
                self._line(self._agents[DOWNLOAD], f"{label}: {line}")

    def tick(self) -> None:
        """Print nothing: the designers are fast, and tools report their own progress."""

    def _line(self, agent: str, text: str) -> None:
        room = self._streams.error_columns - _NAMES - 2
        lines = folded(clean(text), room) if text else []
        for head, part in zip_longest([agent] if lines else [], lines, fillvalue=""):
            self._streams.note(f"{head:<{_NAMES}}  {part}")


def made_text(tool: str, value: Json) -> str:
    """Return the result of a tool of the Generator in one line; empty if others show it."""
    fields = cast("dict[str, Any]", value if isinstance(value, dict) else {})
    match fields:
        case {"chosen": chosen}:
            text = "; ".join(chosen)
        case {"modules": modules}:
            text = f"{counted(len(modules), 'module')}: {'; '.join(modules)}"
        case {"variables": variables, "components": components}:
            shown = counted(len(components), "component")
            text = f"{counted(len(variables), 'variable')}, {shown}"
        case {"plan_acceptance": acceptance}:
            named = f" {fields['plan_hash'][:_SHORT]}" if fields.get("plan_hash") else ""
            text = f"plan{named}: {acceptance.replace('_', ' ')}"
        case {"written": written}:
            text = ", ".join(written) or "done"
        case {"repaired": repaired, "answered": answered}:
            parts = f"repaired: {', '.join(repaired) or 'nothing'}"
            text = f"{parts}; answered: {', '.join(answered)}" if answered else parts
        case {"promotion": promotion, "packages": packages}:
            text = f"{', '.join(packages)}: {promotion}"
        case _ if tool == INTERVIEW:
            answers = {label: fields.get(name) for name, label in _ASSUMED.items()}
            given = (f"{label}: {value}" for label, value in answers.items() if value)
            text = "; ".join(given) or "answered"
        case _:
            text = ""
    return text


def report_lines(generation: Generation, made: Iterable[PartOrigin]) -> list[str]:
    """Return what is open and what was left out, then who made the parts."""
    lines = [f"skeleton: {reason}" for reason in generation.skeleton]
    lines += [
        f"left out, {each['file']}, {each['piece']}: {each['reason']}"
        for each in generation.left_out
    ]
    if generation.bundle and not generation.is_promotable:
        lines += [f"error: {error}" for error in generation.bundle.get("errors") or ()]
        lines += [
            f"differs from the plan: {each['text']} [{each['key']}]"
            for each in generation.unanswered
        ]
    whose: dict[str, list[str]] = {}
    for part in made:
        name = part.model if part.answerer == "model" else part.answerer
        whose.setdefault(name or part.answerer, []).append(part.agent)
    lines += [
        f"{counted(len(agents), 'part')} by {name}: {', '.join(agents)}"
        if len(whose) > 1
        else f"{counted(len(agents), 'part')} by {name}"
        for name, agents in whose.items()
    ]
    lines += [
        f"{part.agent}: {part.answerer} in place of {part.instead_of}"
        for part in made
        if part.instead_of
    ]
    if generation.repairs:
        lines.append(f"the packages were repaired {counted(generation.repairs, 'time')}")
    return lines


def change_data(change: Change) -> dict[str, Json]:
    """Return the promotion of a package as JSON."""
    compared = change.comparison
    return {
        "name": change.name,
        "folder": str(change.place),
        "created": change.created,
        "added": list(compared.added),
        "changed": list(compared.changed),
        "removed": list(compared.removed),
        "edited": list(change.edited),
        "diff": "" if change.created else compared.diff,
    }


def generation_data(generation: Generation, made: Iterable[PartOrigin]) -> dict[str, Json]:
    """Return a generation as JSON."""
    last = generation.rounds[-1] if generation.rounds else None
    return {
        "plan": None if last is None else {"round": last.number, "hash": last.hash},
        "acceptance": generation.acceptance,
        "parts": [asdict(part) for part in made],
        "skeleton": list(generation.skeleton),
        "left_out": [dict(each) for each in generation.left_out],
        "repairs": generation.repairs,
        "promotable": generation.is_promotable,
        **{key: generation.bundle.get(key) for key in ("verdict", "errors", "questions")},
        "promotion": generation.promotion,
    }


def plan_page(round_: Round, streams: Streams) -> str:
    """Return a plan with its diagram, as wide as the terminal; what is open comes first."""
    places = open_places(round_.plan)
    head = ["This plan is a skeleton. Decide:", *(f"  {place}" for place in places), ""]
    lines = [
        part
        for line in [*(head if places else []), *plan_lines(round_.plan)]
        for part in (folded(clean(line), streams.columns, most=_MOST) if line else [""])
    ]
    return "\n".join([*lines, "", clean_lines(plan_drawing(round_.plan).rstrip("\n"))])


def decision_lines(generation: Generation, round_: Round) -> list[str]:
    """Return the decision on a plan, and the comments on it."""
    lines = [f"hash      {round_.hash}", f"round     {round_.number} of {len(generation.rounds)}"]
    if round_.number < len(generation.rounds):
        lines.append("decision  adjustments requested")
    else:
        lines.append(f"decision  {generation.acceptance.replace('_', ' ')}")
    lines += [
        f"comment   about {comment['about']}: {comment['text']}"
        for comment in generation.comments
        if comment.get("round") == round_.plan.version
    ]
    return [clean(line) for line in lines]


def change_note(change: Change) -> str:
    """Return the promotion of a package in one line."""
    if change.created:
        number = f" with {counted(len(change.files), 'file')}" if change.is_package else ""
        return f"created {change.place}{number}"
    compared = change.comparison
    counts: Mapping[str, Sequence[str]] = {
        "added": compared.added,
        "changed": compared.changed,
        "removed": compared.removed,
    }
    changes = ", ".join(f"{len(files)} {word}" for word, files in counts.items() if files)
    kept = f"; your changes stay in {', '.join(change.edited)}" if change.edited else ""
    if not changes:
        return f"unchanged: {change.place}{kept}"
    return f"updated {change.place}: {changes}{kept}"
