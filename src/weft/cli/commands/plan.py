"""weft plan: the action plans of a generation, shown, compared, approved or commented on."""

import asyncio
from dataclasses import replace
from typing import Annotated, Final

from cyclopts import Parameter

from weft.app.folders import LOCAL
from weft.app.generation import APPROVALS, Generation, PlanPart, Round, commented_part
from weft.cli.chat.conversation import Session
from weft.cli.chat.follow_run import interactive_host, run_session
from weft.cli.chat.person import Person
from weft.cli.chat.subscription import subscribed
from weft.cli.failure import CommandFailed, Exit, conflict, not_found, usage
from weft.cli.formats.documents import document
from weft.cli.generated import close_generation, how_to_promote
from weft.cli.generating import (
    ACCEPTED,
    ADJUST,
    Wishes,
    follow_generation,
    require_generation,
)
from weft.cli.hosting import (
    JournalLocation,
    find_run,
    hosted,
    how_to_resume,
    is_stopped,
    locate_journal,
)
from weft.cli.options import JournalFile, PackagesFolder, RunName
from weft.cli.pages.generation import decision_lines, plan_page
from weft.cli.starting import read_message
from weft.cli.streams import Streams
from weft.cli.text import clean
from weft.engine.rows import RequestRow, RunRow
from weft.findings import Json
from weft.generator.plan import change_lines, compare_plans
from weft.runtime.host import Host
from weft.runtime.signals import Answer

#: How much of a hash must be given to name a plan.
_LEAST: Final = 8


def show(
    run: RunName,
    /,
    *,
    round_: Annotated[
        int | None,
        Parameter(name="--round", metavar="N", help="The plan of this round; else the last one."),
    ] = None,
    mermaid: Annotated[bool, Parameter(help="Print the diagram in the language Mermaid.")] = False,
    journal: JournalFile = None,
    streams: Annotated[Streams, Parameter(parse=False)],
) -> Exit:
    """Show a plan, its drawing, and what was decided about it."""
    location = locate_journal(streams, journal, must_exist=True)
    row, generation = _read(location, run)
    shown = _round(row, generation, round_)
    if streams.settings.json:
        content: dict[str, Json] = {
            "run": row.run,
            "round": shown.number,
            "rounds": len(generation.rounds),
            "hash": shown.hash,
            "acceptance": generation.acceptance,
            "comments": [dict(it) for it in generation.comments],
            "plan": shown.plan.model_dump(mode="json", by_alias=True),
        }
        streams.result(document(content))
    elif mermaid:
        streams.result(shown.plan.diagram.mermaid_diagram.rstrip("\n"))
    else:
        streams.result(plan_page(shown, streams))
        streams.result("\n".join(["", *decision_lines(generation, shown)]))
        if generation.acceptance == "pending" and shown is generation.rounds[-1]:
            streams.note(f"  approve: weft plan approve {row.run}{location.options}")
            streams.note(f"  comment: weft plan comment {row.run} TEXT{location.options}")
        if command := how_to_promote(row, generation, location):
            streams.note(f"  promote: {command}")
    return Exit.DONE


def diff(
    run: RunName,
    old: Annotated[
        int | None, Parameter(metavar="ROUND", help="The earlier round; else the last but one.")
    ] = None,
    new: Annotated[
        int | None, Parameter(metavar="ROUND", help="The later round; else the last.")
    ] = None,
    /,
    *,
    journal: JournalFile = None,
    streams: Annotated[Streams, Parameter(parse=False)],
) -> Exit:
    """Compare two rounds: what is new, gone or different."""
    location = locate_journal(streams, journal, must_exist=True)
    row, generation = _read(location, run)
    after = _round(row, generation, new)
    if old is None and len(generation.rounds) == 1:
        raise usage(
            f"run {row.run} has one plan so far, and nothing to compare it with",
            f"look at it: weft plan show {row.run}{location.options}",
            f"ask for another: weft plan comment {row.run} TEXT{location.options}",
        )
    before = _round(row, generation, max(after.number - 1, 1) if old is None else old)
    changes = compare_plans(before.plan, after.plan)
    if streams.settings.json:
        content: dict[str, Json] = {
            "run": row.run,
            "rounds": [before.number, after.number],
            "hashes": [before.hash, after.hash],
            "changes": [
                {"path": it.path, "before": it.before, "after": it.after} for it in changes
            ],
        }
        streams.result(document(content))
        return Exit.DONE
    styles = {"+": "green", "-": "red", "~": "cyan"}
    for line in change_lines(changes):
        streams.result(streams.paint(line, styles[line[0]]))
    if not changes:
        streams.note(f"rounds {before.number} and {after.number} are the same plan")
    return Exit.DONE


def approve(
    run: RunName,
    /,
    *,
    hash_: Annotated[
        str | None,
        Parameter(
            name="--hash", metavar="HASH", help="Approve only if this is the hash of the plan."
        ),
    ] = None,
    output: PackagesFolder = None,
    journal: JournalFile = None,
    streams: Annotated[Streams, Parameter(parse=False)],
) -> Exit:
    """Approve the plan that a generation asks about, and go on with it."""
    wishes = Wishes(output=output)
    return _decide(streams, journal, run, {"plan_acceptance": ACCEPTED}, wishes, hash_)


def comment(
    run: RunName,
    text: Annotated[str, Parameter(help="What shall be different.")],
    /,
    *,
    about: Annotated[
        PlanPart | None,
        Parameter(
            help="The part that shall be different; else the pattern if the text speaks of it, "
            "or the strategy."
        ),
    ] = None,
    output: PackagesFolder = None,
    journal: JournalFile = None,
    streams: Annotated[Streams, Parameter(parse=False)],
) -> Exit:
    """Ask for another plan, and go on until it is there."""
    read_message(text, "say what shall be different")
    part = commented_part(text, about)
    if about not in (None, part):
        streams.problem(f"this is decided with the {part}: the comment is about that, not {about}")
    answer: dict[str, Json] = {"plan_acceptance": ADJUST, "about": part, "comments": text}
    return _decide(streams, journal, run, answer, Wishes(until="plan", output=output), None)


def _decide(
    streams: Streams,
    journal: JournalFile,
    run: str,
    answer: dict[str, Json],
    wishes: Wishes,
    named: str | None,
) -> Exit:
    """Answer the open question about a plan, and follow the generation."""
    session = Session(streams, locate_journal(streams, journal, must_exist=True))
    session.command = "generate --run"

    async def work(person: Person) -> Exit:
        async with interactive_host(session, person, 0) as host:
            row = await find_run(host, run)
            generation = await require_generation(host, row)
            request = await _open_approval(host, row, generation, session.location)
            plan = generation.rounds[-1]
            if named is not None and not _names(named, plan.hash):
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


def _names(given: str, hash_: str) -> bool:
    return len(given) >= _LEAST and hash_.startswith(given.lower())


def _read(location: JournalLocation, run: str) -> tuple[RunRow, Generation]:
    async def work() -> tuple[RunRow, Generation]:
        async with hosted(location, reading=True) as host:
            row = await find_run(host, run)
            return row, await require_generation(host, row)

    return asyncio.run(work())


def _round(row: RunRow, generation: Generation, number: int | None) -> Round:
    """Return the plan of a round; raises if there is none."""
    if not generation.rounds:
        raise _no_plan(row)
    wanted = len(generation.rounds) if number is None else number
    if not 0 < wanted <= len(generation.rounds):
        there = (
            "round 1" if len(generation.rounds) == 1 else f"rounds 1 to {len(generation.rounds)}"
        )
        raise not_found(f"run {row.run} has no round {wanted}", f"it has {there}")
    return generation.rounds[wanted - 1]


def _no_plan(row: RunRow) -> CommandFailed:
    return not_found(
        f"run {row.run} has no plan yet",
        f"go on with it: weft generate --run {row.run}",
        f"see what it has: weft inspect {row.run}",
    )


async def _open_approval(
    host: Host, row: RunRow, generation: Generation, location: JournalLocation
) -> RequestRow:
    """Return the open question about a plan; raises if there is none, and says why."""
    asked = await host.requests(scope=LOCAL, run=row.run)
    request = next((it for it in asked if it.tool in APPROVALS), None)
    if request is not None and generation.rounds:
        return request
    if not generation.rounds:
        raise _no_plan(row)
    if generation.acceptance == ACCEPTED:
        fact = f"the plan of run {row.run} was approved before"
        raise usage(clean(fact), f"go on with it: weft generate --run {row.run}{location.options}")
    go_on = f"go on with it: weft generate --run {row.run}{location.options}"
    raise usage(
        f"run {row.run} does not ask for the approval of a plan",
        *([how_to_resume(row, location)] if is_stopped(row) else [go_on]),
    )
