"""Following a generation: its questions are answered as the person said, or asked, or left open."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final, cast

from weft.app.folders import LOCAL
from weft.app.generation import (
    APPROVALS,
    DOWNLOAD,
    INTERVIEW,
    STEP_AGENTS,
    Generation,
    PlanPart,
    StepName,
    commented_part,
    read_generation,
)
from weft.cli.chat.conversation import AtTerminal, Session, converse
from weft.cli.chat.form import ask_form
from weft.cli.chat.person import Person, stdin_is_terminal
from weft.cli.chat.subscription import Subscription
from weft.cli.failure import usage
from weft.cli.pages.generation import (
    ProgressView,
    StepDone,
    plan_page,
)
from weft.cli.text import clean_lines
from weft.engine.rows import RequestRow, RunRow
from weft.findings import Json
from weft.generator.assisted import TRIES
from weft.generator.steps import is_generator
from weft.runtime.host import Host
from weft.runtime.signals import Answer, Signal
from weft.runtime.workflow import Workflow

#: What is said to a model that asks in words where nobody is there.
_DEFAULTS: Final = "Take what you think best for everything that is open, and show the form."

#: Said where a comment was of no use; these words the designer understands.
IGNORED: Final = (
    "the comment changed nothing in the plan; the designer understands, for example: "
    "add specialist NAME, remove NAME, rename NAME to NAME, pattern: NAME, approval by NAME"
)

ACCEPTED: Final = "accepted"
ADJUST: Final = "adjustments_requested"


@dataclass(frozen=True)
class Wishes:
    """What a person has said beforehand."""

    #: Answers by field, of whichever question.
    answers: Mapping[str, Json] = field(default_factory=dict[str, Json])
    #: Nobody is asked: defaults are taken, and both questions for approval approved.
    approve: bool = False
    promote: bool = False
    #: What was generated from another plan is updated too.
    update: bool = False
    until: StepName | None = None
    #: The folder that packages are put into.
    output: Path | None = None
    #: The hash of the plan that another one is to follow.
    commented: str = ""


async def follow_generation(
    host: Host, session: Session, person: Person, news: Subscription, wishes: Wishes
) -> bool:
    """Follow a generation to its end, to a question that stays open, or to the step wanted.

    Tells whether it was stopped after that step. Close the host then: it would work on.
    """
    workflow = await host.workflow(session.run, scope=LOCAL)
    view = ProgressView(
        session.streams, workflow, until=STEP_AGENTS.get(wishes.until or "files", "")
    )
    answering = _Answering(session, person, workflow, wishes)
    try:
        while True:
            row = await converse(host, session, news, view, None)
            if row.status != "waiting":
                return False
            generation = read_generation(await host.state(session.run, scope=LOCAL))
            asked = await host.requests(scope=LOCAL, run=session.run)
            if not asked:
                return False
            request = asked[0]
            if _ends(wishes.until, request):
                return True
            signal = answering.known(request, generation)
            if signal is None and request.kind == "chat":
                session.streams.note(clean_lines(view.words))
            signal = signal or await answering.ask(request, generation)
            if signal is None:
                return False
            await host.deliver(session.run, signal, scope=LOCAL)
    except StepDone:
        return True


def _ends(until: StepName | None, request: RequestRow) -> bool:
    """Tell whether a question is the end of the step wanted."""
    if until == "plan":
        return request.tool in APPROVALS
    return until == "files" and request.tool == DOWNLOAD


class _Answering:
    """Answers what a generation asks: as was said before, or as the person says now."""

    def __init__(
        self, session: Session, person: Person, workflow: Workflow, wishes: Wishes
    ) -> None:
        self._session = session
        self._person = person
        self._workflow = workflow
        self._wishes = wishes
        self._there = stdin_is_terminal() and not session.streams.settings.json
        self._said = 0
        #: The plan for which the person has asked for another.
        self._commented = ""

    def known(self, request: RequestRow, generation: Generation) -> Signal | None:
        """Return the answer that was given beforehand; None if there is none."""
        value = self._known(request, generation)
        return None if value is None else Answer(request.id, value)

    async def ask(self, request: RequestRow, generation: Generation) -> Signal | None:
        """Ask the person; None if there is nobody."""
        if not self._there:
            return None
        self._session.asking = request.kind
        try:
            return await self._ask(request, generation)
        finally:
            self._session.asking = ""

    def _known(self, request: RequestRow, generation: Generation) -> Json:
        answers, approve = self._wishes.answers, self._wishes.approve
        # Whoever has said something beforehand leaves the rest to the defaults.
        alone = approve or answers or (self._wishes.until and not self._there)
        if request.kind == "chat":
            self._said += 1
            return _DEFAULTS if alone and self._said <= TRIES else None
        if request.tool == INTERVIEW:
            form = self._workflow.forms[INTERVIEW]
            fields = cast("dict[str, Any]", (form.answer_schema or {}).get("properties") or {})
            given = {name: answers[name] for name in fields if name in answers}
            return given if alone else None
        if request.tool in APPROVALS:
            return self._decision(request, generation)
        if request.tool == DOWNLOAD:
            approved = "approved" if approve or self._wishes.promote else None
            chosen = answers.get("promotion", approved)
            return None if chosen is None else {"promotion": chosen}
        return None

    def _decision(self, request: RequestRow, generation: Generation) -> Json:
        """Return what was said about the plan; the same comment is not made twice."""
        answers = self._wishes.answers
        named = {"plan_hash": _hash(request)}
        said = answers.get("plan_acceptance")
        text = answers.get("comments", "")
        if said == ADJUST and all(it["text"] != text for it in generation.comments):
            about = commented_part(str(text), cast("PlanPart | None", answers.get("about")))
            return {"plan_acceptance": ADJUST, **named, "about": about, "comments": text}
        accepted = said == ACCEPTED or self._wishes.approve
        return {"plan_acceptance": ACCEPTED, **named} if accepted else None

    async def _ask(self, request: RequestRow, generation: Generation) -> Signal:
        if request.tool in APPROVALS:
            return Answer(request.id, await self._ask_approval(request, generation))
        signal: Signal | None = None
        terminal = AtTerminal(self._person, self._session.streams, self._workflow)
        while signal is None:
            signal = await terminal(request)
        return signal

    async def _ask_approval(self, request: RequestRow, generation: Generation) -> Json:
        """Show the plan and ask what the person says to it; the hash is named for them."""
        streams = self._session.streams
        plan = generation.rounds[-1]
        streams.problem(plan_page(plan, streams))
        if plan.hash == self._commented:
            streams.problem(IGNORED)
        form = self._workflow.forms[request.tool or ""]
        schema = form.answer_schema or {}
        fields = cast("dict[str, Any]", schema.get("properties") or {})
        answer: dict[str, Json] = {"plan_hash": _hash(request)}
        for names in (("plan_acceptance",), ("about", "comments")):
            part = {
                "type": "object",
                "properties": {name: fields[name] for name in names},
                "required": ["plan_acceptance"] if "plan_acceptance" in names else ["comments"],
            }
            fault = partial(_fault, form.answer_error, answer)
            said = await ask_form(part, self._field, streams.problem, fault, form.field_error)
            answer |= cast("dict[str, Json]", said)
            if answer["plan_acceptance"] == ACCEPTED:
                return answer
        self._commented = plan.hash
        about = commented_part(
            str(answer["comments"]), cast("PlanPart | None", answer.get("about"))
        )
        return {**answer, "about": about}

    async def _field(self, prompt: str, *, secret: bool) -> str:
        return await self._person.line(prompt, secret=secret)


def _fault(whole: Any, known: Mapping[str, Json], answer: Json) -> str | None:  # noqa: ANN401 - a Fault
    return whole({**known, **cast("dict[str, Json]", answer)})


def _hash(request: RequestRow) -> str:
    return str(cast("dict[str, Json]", request.payload)["plan_hash"])


async def require_generation(host: Host, row: RunRow) -> Generation:
    """Return what a run has come to; raises if it is no generation."""
    workflow = await host.workflow(row.run, scope=LOCAL)
    if not is_generator(workflow.spec):
        raise usage(
            f"run {row.run} is a run of {row.workflow}, and no generation",
            "list the generations: weft runs list --workflow Generator",
        )
    return read_generation(await host.state(row.run, scope=LOCAL))
