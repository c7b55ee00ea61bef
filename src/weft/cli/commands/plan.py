"""weft plan: show, compare, approve and comment on the action plans of generations."""

import asyncio
from dataclasses import dataclass, replace
from typing import Annotated, Final

from cyclopts import Parameter

from weft.app.folders import LOCAL
from weft.app.generation import APPROVALS, GENERATOR, Generation, PlanPart, Round, commented_part
from weft.cli.chat.conversation import Session, subscribed
from weft.cli.chat.follow_run import interactive_host, run_session
from weft.cli.chat.person import Person
from weft.cli.failure import CommandFailed, conflict, not_found, usage
from weft.cli.generation import (
    ACCEPTED,
    ADJUST,
    PackagesFolder,
    Wishes,
    close_generation,
    follow_generation,
    how_to_promote,
    require_generation,
)
from weft.cli.hosting import (
    JournalFile,
    JournalLocation,
    Output,
    RunName,
    find_run,
    hosted,
    how_to_resume,
    is_stopped,
    locate_journal,
)
from weft.cli.pages.generation import decision_lines, plan_page
from weft.cli.results import Hidden, Result
from weft.cli.starting import read_message
from weft.cli.streams import Streams
from weft.engine.rows import RequestRow, RunRow
from weft.findings import Json
from weft.generator.plan import Change, change_lines, compare_plans
from weft.runtime.host import Host
from weft.runtime.signals import Answer

#: The least length of a hash on the command line.
_LEAST: Final = 8


@dataclass(frozen=True)
class ShownPlan(Result):
    """The plan of one round of a generation."""

    run: str
    round: int
    rounds: int
    hash: str
    acceptance: str
    comments: list[dict[str, Json]]
    plan: Json
    found: Hidden[Round]
    generation: Hidden[Generation]
    mermaid: Hidden[bool]
    options: Hidden[str]
    promote: Hidden[str]

    def show(self, streams: Streams) -> None:
        """Print the plan with its diagram and the decisions, or the diagram as Mermaid."""
        if self.mermaid:
            streams.result(self.found.plan.diagram.mermaid_diagram.rstrip("\n"))
            return
        streams.result(plan_page(self.found, streams))
        streams.result("\n".join(["", *decision_lines(self.generation, self.found)]))
        if self.acceptance == "pending" and self.round == self.rounds:
            streams.note(f"  approve: weft plan approve {self.run}{self.options}")
            streams.note(f"  comment: weft plan comment {self.run} TEXT{self.options}")
        if self.promote:
            streams.note(f"  promote: {self.promote}")


@dataclass(frozen=True)
class PlanDiff(Result):
    """The differences between two rounds of a plan."""

    run: str
    rounds: tuple[int, int]
    hashes: tuple[str, str]
    changes: tuple[Change, ...]

    def show(self, streams: Streams) -> None:
        """Print one line per change."""
        styles = {"+": "green", "-": "red", "~": "cyan"}
        for line in change_lines(self.changes):
            streams.result(streams.paint(line, styles[line[0]]))
        if not self.changes:
            streams.note(f"rounds {self.rounds[0]} and {self.rounds[1]} are the same plan")


def show(
    run: RunName,
    /,
    *,
    round_: Annotated[
        int | None,
        Parameter(name="--round", metavar="N", help="The plan of this round; default: the last."),
    ] = None,
    mermaid: Annotated[bool, Parameter(help="Print the diagram as Mermaid.")] = False,
    journal: JournalFile = None,
    streams: Output,
) -> Result:
    """Show a plan, its diagram and the decisions."""
    location = locate_journal(streams, journal, must_exist=True)
    row, generation = _read(location, run)
    found = _round(row, generation, round_)
    return ShownPlan(
        row.run,
        found.number,
        len(generation.rounds),
        found.hash,
        generation.acceptance,
        [dict(comment) for comment in generation.comments],
        found.plan.model_dump(mode="json", by_alias=True),
        found,
        generation,
        mermaid,
        location.options,
        how_to_promote(row, generation, location),
    )


def diff(
    run: RunName,
    old: Annotated[
        int | None, Parameter(help="The earlier round; default: the last but one.")
    ] = None,
    new: Annotated[int | None, Parameter(help="The later round; default: the last.")] = None,
    /,
    *,
    journal: JournalFile = None,
    streams: Output,
) -> Result:
    """Compare two rounds of a plan."""
    location = locate_journal(streams, journal, must_exist=True)
    row, generation = _read(location, run)
    after = _round(row, generation, new)
    if old is None and len(generation.rounds) == 1:
        raise usage(
            f"run {row.run} has only one plan so far",
            f"look at it: weft plan show {row.run}{location.options}",
            f"ask for another: weft plan comment {row.run} TEXT{location.options}",
        )
    before = _round(row, generation, max(after.number - 1, 1) if old is None else old)
    return PlanDiff(
        row.run,
        (before.number, after.number),
        (before.hash, after.hash),
        compare_plans(before.plan, after.plan),
    )


def approve(
    run: RunName,
    /,
    *,
    hash_: Annotated[
        str | None,
        Parameter(name="--hash", metavar="HASH", help="Approve only the plan with this hash."),
    ] = None,
    output: PackagesFolder = None,
    journal: JournalFile = None,
    streams: Output,
) -> Result:
    """Approve the plan of a generation, and continue it."""
    wishes = Wishes(output=output)
    return _decide(streams, journal, run, {"plan_acceptance": ACCEPTED}, wishes, hash_)


def comment(
    run: RunName,
    text: Annotated[str, Parameter(help="What to change.")],
    /,
    *,
    about: Annotated[
        PlanPart | None,
        Parameter(
            help="The part to change; default: the pattern if the text mentions it, or the "
            "strategy."
        ),
    ] = None,
    output: PackagesFolder = None,
    journal: JournalFile = None,
    streams: Output,
) -> Result:
    """Ask for changes to a plan, and continue until the next plan is ready."""
    read_message(text, "describe what to change")
    part = commented_part(text, about)
    if about not in (None, part):
        streams.problem(
            f"the {part} decides this: the comment is about the {part}, not the {about}"
        )
    answer: dict[str, Json] = {"plan_acceptance": ADJUST, "about": part, "comments": text}
    return _decide(streams, journal, run, answer, Wishes(until="plan", output=output), None)


def _decide(
    streams: Streams,
    journal: JournalFile,
    run: str,
    answer: dict[str, Json],
    wishes: Wishes,
    named: str | None,
) -> Result:
    """Answer the open request about a plan, and follow the generation."""
    session = Session(streams, locate_journal(streams, journal, must_exist=True))
    session.command = "generate --run"

    async def work(person: Person) -> Result:
        async with interactive_host(session, person, 0) as host:
            row = await find_run(host, run, workflow=GENERATOR)
            generation = await require_generation(host, row)
            request = await _open_approval(host, row, generation, session.location)
            plan = generation.rounds[-1]
            if named is not None and not _is_hash(named, plan.hash):
                raise conflict(
                    f"{named} is not the hash of the plan of run {row.run}, which is {plan.hash}",
                    f"look at the plan: weft plan show {row.run}{session.location.options}",
                )
            session.run, session.printed = row.run, row.seq
            async with subscribed(host, row.run, after=row.seq) as news:
                value = {**answer, "plan_hash": plan.hash}
                await host.deliver(row.run, Answer(request.id, value), scope=LOCAL)
                stopped = await follow_generation(host, session, person, news, wishes)
        commented = plan.hash if wishes.until == "plan" else ""
        done = replace(wishes, commented=commented)
        return await close_generation(session, done, stopped=stopped)

    return run_session(session, work)


def _is_hash(given: str, hash_: str) -> bool:
    return len(given) >= _LEAST and hash_.startswith(given.lower())


def _read(location: JournalLocation, run: str) -> tuple[RunRow, Generation]:
    async def work() -> tuple[RunRow, Generation]:
        async with hosted(location, reading=True) as host:
            row = await find_run(host, run, workflow=GENERATOR)
            return row, await require_generation(host, row)

    return asyncio.run(work())


def _round(row: RunRow, generation: Generation, number: int | None) -> Round:
    """Return the plan of a round; raises if it does not exist."""
    if not generation.rounds:
        raise _no_plan(row)
    wanted = len(generation.rounds) if number is None else number
    if not 0 < wanted <= len(generation.rounds):
        count = len(generation.rounds)
        known = "round 1" if count == 1 else f"rounds 1 to {count}"
        raise not_found(f"run {row.run} has no round {wanted}", f"it has {known}")
    return generation.rounds[wanted - 1]


def _no_plan(row: RunRow) -> CommandFailed:
    return not_found(
        f"run {row.run} has no plan yet",
        f"continue it: weft generate --run {row.run}",
        f"inspect it: weft inspect {row.run}",
    )


async def _open_approval(
    host: Host, row: RunRow, generation: Generation, location: JournalLocation
) -> RequestRow:
    """Return the open request about a plan; raises if there is none."""
    asked = await host.requests(scope=LOCAL, run=row.run)
    request = next((each for each in asked if each.tool in APPROVALS), None)
    if request is not None and generation.rounds:
        return request
    if not generation.rounds:
        raise _no_plan(row)
    if generation.acceptance == ACCEPTED:
        continue_ = f"continue it: weft generate --run {row.run}{location.options}"
        raise usage(f"the plan of run {row.run} is already approved", continue_)
    continue_ = f"continue it: weft generate --run {row.run}{location.options}"
    raise usage(
        f"run {row.run} does not wait for the approval of a plan",
        *([how_to_resume(row, location)] if is_stopped(row) else [continue_]),
    )
