"""Following a generation: its questions are answered as the person said, or asked, or left open."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from shlex import quote
from typing import Any, Final, cast

from weft.app.generation import (
    APPROVALS,
    DOWNLOAD,
    INTERVIEW,
    STEP_AGENTS,
    Generation,
    StepName,
    parts_made,
    read_generation,
)
from weft.app.places import LOCAL
from weft.app.promotion import Promotion, prepare, promote, stage
from weft.cli.chat.conversation import AtTerminal, Session, converse
from weft.cli.chat.form import ask_form
from weft.cli.chat.person import Person, stdin_is_terminal
from weft.cli.chat.subscription import Subscription
from weft.cli.failure import CommandFailed, Exit, Failure, code_of, usage
from weft.cli.formats.documents import document
from weft.cli.hosting import JournalLocation, answer_schemas, hosted
from weft.cli.pages.generation import (
    ProgressView,
    StepDone,
    change_data,
    change_note,
    generation_data,
    plan_page,
    report_lines,
)
from weft.cli.pages.runs import outcome_text
from weft.cli.streams import Streams
from weft.cli.text import clean, clean_lines
from weft.engine.events import Event
from weft.engine.rows import RequestRow, RunRow
from weft.findings import Json
from weft.generator.assisted import TRIES
from weft.generator.steps import is_generator
from weft.packages.workspace import PACKAGES
from weft.runtime.host import Host
from weft.runtime.signals import Answer, Signal
from weft.runtime.workflow import Workflow
from weft.wire.rows import run_data

#: What is said to a model that asks in words where nobody is there.
_DEFAULTS: Final = "Take what you think best for everything that is open, and show the form."

#: Said where a comment was of no use; these words the designer understands.
_IGNORED: Final = (
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
        if request.kind == "chat":
            self._said += 1
            return _DEFAULTS if approve and self._said <= TRIES else None
        if request.tool == INTERVIEW:
            form = self._workflow.forms[INTERVIEW]
            fields = cast("dict[str, Any]", (form.answer_schema or {}).get("properties") or {})
            given = {name: answers[name] for name in fields if name in answers}
            return given if given or approve else None
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
            comment = {name: answers[name] for name in ("about", "comments") if name in answers}
            return {"plan_acceptance": ADJUST, **named, **comment}
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
        streams.problem(plan_page(generation.rounds[-1], streams))
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
            fault = partial(_fault, form.answer_fault, answer)
            said = await ask_form(part, self._field, streams.problem, fault, form.field_fault)
            answer |= cast("dict[str, Json]", said)
            if answer["plan_acceptance"] == ACCEPTED:
                break
        return answer

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


async def close_generation(session: Session, wishes: Wishes, *, stopped: bool) -> Exit:
    """Stage what a generation offers, promote what was approved, and tell it all."""
    async with hosted(session.location, reading=True) as host:
        row = await host.run(session.run, scope=LOCAL)
        generation = read_generation(await host.state(session.run, scope=LOCAL))
        history = [it async for it in host.events(session.run, scope=LOCAL)]
        asked = await host.requests(scope=LOCAL, run=session.run)
        schemas = await answer_schemas(host, asked)
    made = parts_made(it for it in history if isinstance(it, Event))
    streams, location = session.streams, session.location
    staged = None
    if generation.bundle:
        staged = stage(generation.bundle, location.workspace, row.run)
    if not streams.settings.json:
        for line in report_lines(generation, made):
            streams.note(clean(line))
    promotion = _promoted(generation, row, wishes, location)
    if streams.settings.json:
        streams.result(
            document(
                {
                    "run": run_data(row, asked, schemas),
                    **generation_data(generation, made),
                    "staged": None if staged is None else str(staged),
                    "packages": [change_data(it) for it in promotion.changes],
                }
            )
        )
        return _exit(row, stopped=stopped)
    _print_promotion(streams, promotion)
    return _print_end(session, row, generation, asked, wishes, staged, stopped=stopped)


def _promoted(
    generation: Generation, row: RunRow, wishes: Wishes, location: JournalLocation
) -> Promotion:
    """Let the packages take their place if that was approved; raises if something is in the way."""
    done = generation.bundle and row.outcome == "completed"
    if not (done and _is_wanted(generation, wishes)):
        return Promotion(())
    folder, update = output_folder(location, wishes.output), wishes.update or generation.plan_given
    promotion = prepare(generation.bundle, folder, location.workspace, update=update)
    if not promotion.ok:
        raise _refusal(promotion, row, location)
    promote(promotion)
    return promotion


def _is_wanted(generation: Generation, wishes: Wishes) -> bool:
    """Tell whether packages shall take their place; who declined before may change their mind."""
    anew = wishes.promote and wishes.answers.get("promotion") != "declined"
    return generation.promotion == "approved" or anew


def output_folder(location: JournalLocation, output: Path | None) -> Path:
    """Return the folder that packages are put into."""
    return location.workspace / PACKAGES if output is None else output


def _refusal(promotion: Promotion, row: RunRow, location: JournalLocation) -> CommandFailed:
    again = f"weft generate --run {row.run} --promote{location.options}"
    places = ", ".join(map(str, promotion.strangers or promotion.others))
    hint = (f"then: {again}",)
    if promotion.strangers:
        fact = f"{places} is already there and was not generated here"
        hint = ("move it away, or name another folder: -o DIR", *hint)
    elif promotion.others:
        fact = f"{places} is already there, made from another plan"
        hint = (
            f"update it, with what you have changed kept: {again} --update",
            f"or keep both: {again} -o DIR",
            "or begin anew under another name: a goal of two to four words is the name",
        )
    elif promotion.conflicts:
        fact = "the same lines were changed by hand and by the generation"
        staged = f".weft/generated/{row.run}"
        hint = (f"compare with the files in {staged} and change these lines", *hint)
    else:
        fact = "what was changed by hand does not go with what is generated now"
    return CommandFailed(
        Failure(
            Exit.CONFLICT,
            f"{fact}; nothing was changed",
            cause=() if places else promotion.conflicts,
            hint=hint,
            findings=promotion.errors,
            run=row.run,
        )
    )


def _print_promotion(streams: Streams, promotion: Promotion) -> None:
    styles = {"+": "green", "-": "red", "@": "cyan"}
    for change in promotion.changes:
        for line in [] if change.created else change.comparison.diff.splitlines():
            streams.result(streams.paint(line, styles.get(line[:1], "")))
    for change in promotion.changes:
        streams.result(clean(change_note(change)))


def _exit(row: RunRow, *, stopped: bool) -> Exit:
    if row.status == "ended":
        return Exit.DONE if row.outcome == "completed" else Exit.FAILED
    return Exit.DONE if stopped else Exit.WAITING


def _print_end(
    session: Session,
    row: RunRow,
    generation: Generation,
    asked: list[RequestRow],
    wishes: Wishes,
    staged: Path | None,
    *,
    stopped: bool,
) -> Exit:
    streams, options = session.streams, session.location.options
    run = row.run
    if row.status == "ended" and row.outcome != "completed":
        hint = f"see what happened: weft inspect {run}{options}"
        raise CommandFailed(Failure(Exit.FAILED, outcome_text(row), hint=(hint,), run=run))
    if row.status == "ended":
        if not _is_wanted(generation, wishes):
            streams.note(clean(f"not promoted; its files are in {staged}"))
            streams.note(f"  promote: weft generate --run {run} --promote{options}")
        streams.note(f"  inspect: weft inspect {run}{options}")
        return Exit.DONE
    _print_how_to_go_on(session, row, generation, asked, wishes, stopped=stopped)
    return _exit(row, stopped=stopped)


def _print_how_to_go_on(
    session: Session,
    row: RunRow,
    generation: Generation,
    asked: list[RequestRow],
    wishes: Wishes,
    *,
    stopped: bool,
) -> None:
    """Say what a generation waits for, or after which step it was stopped, and what comes next."""
    streams, options = session.streams, session.location.options
    run, tool = row.run, asked[0].tool if asked else None
    output = f" -o {quote(str(wishes.output))}" if wishes.output else ""
    go_on = f"weft generate --run {run}{output}{options}"
    commands: dict[str, str] = {}
    if tool in APPROVALS:
        fact = "the approval of its plan"
        commands["show"] = f"weft plan show {run}{options}"
        commands["approve"] = f"weft plan approve {run}{options}"
        commands["comment"] = f"weft plan comment {run} TEXT{options}"
    elif tool == DOWNLOAD:
        fact = "the approval of its packages"
        commands["promote"] = f"{go_on} --promote"
    elif asked:
        fact = "an answer to its interview" if tool else "a message"
        commands["answer"] = f"weft runs answer {run}{options}"
        commands["defaults"] = f"{go_on} --approve"
    else:
        fact = ""
    commands["go on"] = go_on
    if generation.rounds and generation.rounds[-1].hash == wishes.commented:
        streams.problem(_IGNORED)
    if stopped:
        streams.note(f"run {run} is stopped after {wishes.until}")
    else:
        head = streams.paint_error(f"waiting[{code_of(Exit.WAITING)}]", "bold yellow")
        streams.problem(f"{head}: run {run} waits for {fact}")
    tell = streams.note if stopped else streams.problem
    for name, command in commands.items():
        tell(f"  {name + ':':<10}{command}")
