"""Following a generation: answer its requests, promote its packages, print the next steps."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from shlex import quote
from typing import Annotated, Any, Final, TypeAlias, cast

from cyclopts import Parameter

from weft.app.generation import (
    ACCEPTED,
    ADJUST,
    APPROVALS,
    DOWNLOAD,
    INTERVIEW,
    STEP_AGENTS,
    Generation,
    PlanPart,
    commented_part,
    part_makers,
    read_generation,
)
from weft.app.promotion import (
    REPORT_FILE,
    Promotion,
    stage,
)
from weft.cli.chat.conversation import AtTerminal, Session, Subscription, converse
from weft.cli.chat.follow_run import recorded_events
from weft.cli.chat.form import ask_form
from weft.cli.chat.person import Person, stdin_is_terminal
from weft.cli.failure import Exit, Failure, code_of, usage
from weft.cli.hosting import hosted
from weft.cli.pages.findings import painted_diff
from weft.cli.pages.generation import (
    ProgressView,
    StepDone,
    change_data,
    change_note,
    generation_data,
    plan_page,
    report_lines,
)
from weft.cli.pages.runs import RunStatus, outcome_text
from weft.cli.promotion import (
    HOW_TO_ANSWER,
    HOW_TO_COMPLETE,
    Wishes,
    command_to_continue,
    is_wanted,
    promote_packages,
)
from weft.cli.results import Hidden, print_failure
from weft.cli.scope import command_scope
from weft.cli.streams import Streams, clean, clean_lines
from weft.engine.rows import RequestRow, RunRow
from weft.findings import Json
from weft.generator.assisted import TRIES
from weft.generator.steps import is_generator
from weft.runtime.host import Host
from weft.runtime.signals import Answer, Signal
from weft.runtime.workflow import Workflow

#: Where generated packages are written.
PackagesFolder: TypeAlias = Annotated[
    Path | None,
    Parameter(
        name=("--output", "-o"),
        metavar="DIR",
        help="Folder for packages; default: `workflows` of the workspace.",
    ),
]

#: The answer to a model that asks in words where there is no person.
_DEFAULTS: Final = "Take what you think best for everything that is open, and show the form."

#: Printed after a comment without effect.
IGNORED: Final = "the comment changed nothing in the plan; edit it yourself: weft plan edit RUN"

#: The tools whose request ends a step.
_LAST_TOOLS: Final = {"plan": APPROVALS, "files": (DOWNLOAD,)}


async def follow_generation(
    host: Host, session: Session, person: Person, news: Subscription, wishes: Wishes
) -> bool:
    """Follow a generation to its end, to an open request, or to the step of --until.

    Returns whether it was stopped after that step. Close the host then: it would continue.
    """
    workflow = await host.workflow(session.run, scope=command_scope())
    view = ProgressView(
        session.streams, workflow, until=STEP_AGENTS.get(wishes.until or "files", "")
    )
    answering = _Answering(session, person, workflow, wishes)
    try:
        while True:
            row = await converse(host, session, news, view, None)
            if row.status != "waiting":
                return False
            generation = read_generation(await host.state(session.run, scope=command_scope()))
            asked = await host.requests(scope=command_scope(), run=session.run)
            if not asked:
                return False
            request = asked[0]
            if request.tool in _LAST_TOOLS.get(wishes.until or "", ()):
                return True
            signal = answering.known(request, generation)
            asks = request.kind == "chat" or request.tool == INTERVIEW
            if signal is None and not asks and wishes.refuses(request.tool, generation):
                return False
            if signal is None and request.kind == "chat":
                session.streams.note(clean_lines(view.words))
            signal = signal or await answering.ask(request, generation)
            if signal is None:
                return False
            await host.deliver(session.run, signal, scope=command_scope())
    except StepDone:
        return True


class _Answering:
    """Answers the requests of a generation: as decided before, or as the person decides now."""

    def __init__(
        self, session: Session, person: Person, workflow: Workflow, wishes: Wishes
    ) -> None:
        self._session = session
        self._person = person
        self._workflow = workflow
        self._wishes = wishes
        self._has_person = stdin_is_terminal() and not session.streams.settings.json
        self._messages = 0
        #: The hash of the plan that the person commented on.
        self._commented = ""

    def known(self, request: RequestRow, generation: Generation) -> Signal | None:
        """Return the answer that was decided before; None if there is none."""
        value = self._known(request, generation)
        return None if value is None else Answer(request.id, value)

    async def ask(self, request: RequestRow, generation: Generation) -> Signal | None:
        """Ask the person; None if there is no person."""
        if not self._has_person:
            return None
        self._session.asking = request.kind
        try:
            return await self._ask(request, generation)
        finally:
            self._session.asking = ""

    def _known(self, request: RequestRow, generation: Generation) -> Json:
        answers, approve = self._wishes.answers, self._wishes.approve
        # Given answers leave the other fields to the defaults.
        alone = approve or answers or (self._wishes.until and not self._has_person)
        if request.kind == "chat":
            self._messages += 1
            return _DEFAULTS if alone and self._messages <= TRIES else None
        if request.tool == INTERVIEW:
            form = self._workflow.forms[INTERVIEW]
            fields = cast("dict[str, Any]", (form.answer_schema or {}).get("properties") or {})
            given = {name: answers[name] for name in fields if name in answers}
            return given if alone else None
        if request.tool in APPROVALS:
            return self._decision(request, generation)
        if request.tool == DOWNLOAD:
            return self._promotion(generation)
        return None

    def _promotion(self, generation: Generation) -> Json:
        """Return the decision on the packages."""
        if self._wishes.answers.get("promotion") == "declined":
            return {"promotion": "declined"}
        accepted = self._accepts(DOWNLOAD, generation)
        return {"promotion": "approved"} if accepted else None

    def _accepts(self, tool: str | None, generation: Generation) -> bool:
        return self._wishes.accepts(tool) and not self._wishes.refuses(tool, generation)

    def _decision(self, request: RequestRow, generation: Generation) -> Json:
        """Return the decision on the plan; the same comment is not made twice."""
        answers = self._wishes.answers
        named = {"plan_hash": _hash(request)}
        decision = answers.get("plan_acceptance")
        text = answers.get("comments", "")
        if decision == ADJUST and all(each["text"] != text for each in generation.comments):
            about = commented_part(str(text), cast("PlanPart | None", answers.get("about")))
            return {"plan_acceptance": ADJUST, **named, "about": about, "comments": text}
        accepted = self._accepts(request.tool, generation)
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
        """Show the plan, and ask for the decision; the hash is added for the person."""
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
            error = partial(_answer_error, form.answer_error, answer)
            ask, tell = self._person.line, streams.problem
            typed = await ask_form(part, ask, tell, error, form.field_error)
            answer |= cast("dict[str, Json]", typed)
            if answer["plan_acceptance"] == ACCEPTED:
                return answer
        self._commented = plan.hash
        about = commented_part(
            str(answer["comments"]), cast("PlanPart | None", answer.get("about"))
        )
        return {**answer, "about": about}


def _answer_error(whole: Any, known: Mapping[str, Json], answer: Json) -> str | None:  # noqa: ANN401 - a validator
    return whole({**known, **cast("dict[str, Json]", answer)})


def _hash(request: RequestRow) -> str:
    return str(cast("dict[str, Json]", request.payload)["plan_hash"])


async def require_generation(host: Host, row: RunRow) -> Generation:
    """Return the generation of a run; raises if the run is not one."""
    workflow = await host.workflow(row.run, scope=command_scope())
    if not is_generator(workflow.spec):
        raise usage(
            f"run {row.run} is a run of {row.workflow}, not a generation",
            "list the generations: weft runs list --workflow Generator",
        )
    return read_generation(await host.state(row.run, scope=command_scope()))


@dataclass(frozen=True)
class GenerationEnd(RunStatus):
    """A generation that ended, waits, or was stopped after a step."""

    generation: Hidden[Generation | None] = None
    made: Hidden[tuple[Any, ...]] = ()
    wishes: Hidden[Wishes] = field(default_factory=Wishes)
    staged: Hidden[Path | None] = None
    promotion: Hidden[Promotion] = field(default_factory=lambda: Promotion(()))
    stopped: Hidden[bool] = False

    def content(self) -> dict[str, Json]:
        """Return the run, the plan, the parts and the packages."""
        return {
            **super().content(),
            **generation_data(cast("Generation", self.generation), self.made),
            "staged": None if self.staged is None else str(self.staged),
            "packages": [change_data(change) for change in self.promotion.changes],
        }

    @property
    def exit(self) -> Exit:
        """The exit code: 4 if it waits, 1 if it failed or its packages have errors."""
        if self.row.status == "ended":
            is_done = self.row.outcome == "completed" and not self._has_errors
            return Exit.DONE if is_done else Exit.FAILED
        return Exit.DONE if self.stopped else Exit.WAITING

    @property
    def _has_errors(self) -> bool:
        """Whether the checks found errors, and the packages were not repaired and promoted."""
        return not (cast("Generation", self.generation).is_promotable or self.promotion.changes)

    @property
    def _promote(self) -> str:
        """The command that promotes the packages."""
        skeleton = " --skeleton" if cast("Generation", self.generation).skeleton else ""
        return f"{command_to_continue(self.row, self.wishes, self.location)} --promote{skeleton}"

    def show(self, streams: Streams) -> None:
        """Print the packages, and what to do next."""
        for change in self.promotion.changes:
            if not change.created:
                for line in painted_diff(change.comparison.diff, streams):
                    streams.result(line)
        for change in self.promotion.changes:
            streams.result(clean(change_note(change)))
        if self.row.status != "ended":
            self._show_next(streams)
        elif self.row.outcome != "completed":
            hint = f"see what happened: {self.inspect}"
            failure = Failure(Exit.FAILED, outcome_text(self.row), hint=(hint,), run=self.row.run)
            print_failure(failure, streams)
        elif self._has_errors:
            generation = cast("Generation", self.generation)
            hint = [f"repair the files in {self.staged}; {REPORT_FILE} lists what to do"]
            if generation.unanswered:
                hint.append(HOW_TO_ANSWER)
            hint.append(f"then: {self._promote}")
            message = "the package has findings and was not promoted"
            failure = Failure(Exit.FAILED, message, hint=tuple(hint), run=self.row.run)
            print_failure(failure, streams)
        else:
            if not is_wanted(cast("Generation", self.generation), self.wishes):
                streams.note(clean(f"not promoted; its files are in {self.staged}"))
                streams.note(f"  promote: {self._promote}")
            streams.note(f"  inspect: {self.inspect}")

    def _show_next(self, streams: Streams) -> None:
        """Print what a generation waits for or was stopped after, and the next commands."""
        run, options, asked = self.row.run, self.location.options, self.requests
        tool = asked[0].tool if asked else None
        output = f" -o {quote(str(self.wishes.output))}" if self.wishes.output else ""
        continue_ = command_to_continue(self.row, self.wishes, self.location)
        commands: dict[str, str] = {}
        waits_for = ""
        generation = cast("Generation", self.generation)
        if tool in APPROVALS:
            waits_for = "the approval of its plan"
            commands["show"] = f"weft plan show {run}{options}"
            commands["edit"] = f"weft plan edit {run}{options}"
            skeleton = " --skeleton" if generation.skeleton else ""
            commands["approve"] = f"weft plan approve {run}{output}{skeleton}{options}"
            commands["comment"] = f"weft plan comment {run} TEXT{output}{options}"
        elif tool == DOWNLOAD:
            waits_for = "the approval of its packages"
            commands["promote"] = self._promote
        elif asked:
            waits_for = "an answer to its interview" if tool else "a message"
            commands["answer"] = f"weft runs answer {run}{options}"
            commands["answers"] = f"{continue_} --answers FILE"
            commands["defaults"] = f"{continue_} --approve"
        commands["continue"] = continue_
        if tool in (*APPROVALS, DOWNLOAD) and self.wishes.refuses(tool, generation):
            streams.problem("a skeleton is accepted only with --skeleton:")
            for reason in generation.skeleton:
                streams.problem(clean(f"  {reason}"))
            commands = HOW_TO_COMPLETE | commands
            commands["as it is"] = f"{continue_} --approve --skeleton"
        rounds = generation.rounds
        if rounds and rounds[-1].hash == self.wishes.commented:
            streams.problem(IGNORED)
        if self.stopped:
            streams.note(f"run {run} is stopped after {self.wishes.until}")
        else:
            head = streams.paint_error(f"waiting[{code_of(Exit.WAITING)}]", "bold yellow")
            streams.problem(f"{head}: run {run} waits for {waits_for}")
        tell = streams.note if self.stopped else streams.problem
        for name, command in commands.items():
            tell(f"  {name + ':':<10}{command}")


async def close_generation(session: Session, wishes: Wishes, *, stopped: bool) -> GenerationEnd:
    """Stage the packages of a generation, and promote them if that was approved."""
    location = session.location
    async with hosted(location, reading=True) as host:
        end = await GenerationEnd.read(host, session.run, location, wishes=wishes, stopped=stopped)
        generation = read_generation(await host.state(session.run, scope=command_scope()))
        events = await recorded_events(host, session.run)
    made = tuple(part_makers(events))
    staged = None
    if generation.bundle:
        staged = stage(generation.bundle, location.workspace, session.run)
    for line in report_lines(generation, made):
        session.streams.note(clean(line))
    # In a thread: packages that were refused are checked again with simulated runs.
    work = partial(promote_packages, session.streams, generation, end.row, wishes, location, staged)
    promotion = await asyncio.to_thread(work)
    return replace(end, generation=generation, made=made, staged=staged, promotion=promotion)
