"""weft plan: show, compare, approve, comment on and edit the action plans of generations."""

import asyncio
import shlex
import subprocess
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Final

from weft.app.generation import (
    ACCEPTED,
    ADJUST,
    APPROVALS,
    EDITED,
    GENERATOR,
    Generation,
    PlanPart,
    Round,
    commented_part,
    plan_text,
    read_plan,
)
from weft.cli.chat.conversation import Session, subscribed
from weft.cli.chat.follow_run import interactive_host, run_session
from weft.cli.chat.person import Person
from weft.cli.failure import CommandFailed, conflict, not_found, setup, usage
from weft.cli.generation import (
    PackagesFolder,
    close_generation,
    follow_generation,
    require_generation,
)
from weft.cli.hosting import (
    JournalFile,
    JournalLocation,
    RunName,
    find_run,
    hosted,
    how_to_resume,
    is_stopped,
    locate_journal,
)
from weft.cli.options import Output, command
from weft.cli.pages.generation import decision_lines, plan_page
from weft.cli.promotion import Wishes, how_to_promote
from weft.cli.results import Result
from weft.cli.scope import command_scope
from weft.cli.starting import read_message, read_text_file
from weft.cli.streams import Streams
from weft.engine.rows import RequestRow, RunRow
from weft.environment import read_environment
from weft.findings import Json
from weft.generator.forms.skeleton import open_places
from weft.generator.plans.plan import change_lines, compare_plans, plan_hash
from weft.ids import slug
from weft.packages.text import documents
from weft.runtime.host import Host
from weft.runtime.signals import Answer
from weft.spec.plan import ActionPlan

#: The least length of a hash on the command line.
_LEAST: Final = 8


@command
def show(
    run: RunName,
    /,
    *,
    round_: int | None = None,
    mermaid: bool = False,
    yaml: bool = False,
    journal: JournalFile = None,
    streams: Output,
) -> Result:
    """Show the plan of a generation, its diagram and the decisions.

    RUN `last` is the last generation.

    Options:
      --round N  The plan of this round; default: the last.
      --mermaid  Print the diagram as Mermaid.
      --yaml     Print the plan as YAML, to edit it.

    Examples:
      weft plan show last
      weft plan show last --round 1
      weft plan show last --mermaid
    """
    location = locate_journal(streams, journal, must_exist=True)
    row, generation = _read(location, run)
    found = _round(row, generation, round_)
    data = {
        "run": row.run,
        "round": found.number,
        "rounds": len(generation.rounds),
        "hash": found.hash,
        "acceptance": generation.acceptance,
        "open": open_places(found.plan),
        "comments": [dict(comment) for comment in generation.comments],
        "plan": found.plan.model_dump(mode="json", by_alias=True),
    }
    if mermaid:
        return Result(data, found.plan.diagram.mermaid_diagram.rstrip("\n"))
    if yaml:
        return Result(data, plan_text(found.plan).rstrip("\n"))
    notes: list[str] = []
    if generation.acceptance == "pending" and found.number == len(generation.rounds):
        skeleton = " --skeleton" if open_places(found.plan) else ""
        notes.append(f"  approve: weft plan approve {row.run}{skeleton}{location.options}")
        notes.append(f"  edit:    weft plan edit {row.run}{location.options}")
        notes.append(f"  comment: weft plan comment {row.run} TEXT{location.options}")
    promote = how_to_promote(row, generation, location)
    notes += [f"  promote: {promote}"] if promote else []
    page = [plan_page(found, streams), "", *decision_lines(generation, found)]
    return Result(data, "\n".join(page), notes)


@command
def diff(
    run: RunName,
    old: int | None = None,
    new: int | None = None,
    /,
    *,
    journal: JournalFile = None,
    streams: Output,
) -> Result:
    """Compare two rounds of a plan; by default the last two.

    Options:
      OLD  The earlier round; default: the last but one.
      NEW  The later round; default: the last.

    Examples:
      weft plan diff last
      weft plan diff last 1 3
    """
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
    changes = compare_plans(before.plan, after.plan)
    data = {
        "run": row.run,
        "rounds": (before.number, after.number),
        "hashes": (before.hash, after.hash),
        "changes": changes,
    }
    styles = {"+": "green", "-": "red", "~": "cyan"}
    text = "\n".join(streams.paint(line, styles[line[0]]) for line in change_lines(changes))
    same = f"rounds {before.number} and {after.number} are the same plan"
    return Result(data, text, [] if changes else [same])


@command
def approve(
    run: RunName,
    /,
    *,
    hash_: str | None = None,
    skeleton: bool = False,
    output: PackagesFolder = None,
    journal: JournalFile = None,
    streams: Output,
) -> Result:
    """Approve the plan that a generation waits with, and continue the generation.

    Options:
      --hash HASH  Approve only the plan with this hash.
      --skeleton   Also approve a plan with open places.

    Examples:
      weft plan approve last
      weft plan approve last --hash 3f9c2a1b7d40
    """
    wishes = Wishes(skeleton=skeleton, output=output)
    return _decide(streams, journal, run, {"plan_acceptance": ACCEPTED}, wishes, hash_)


@command
def comment(
    run: RunName,
    text: str,
    /,
    *,
    about: PlanPart | None = None,
    output: PackagesFolder = None,
    journal: JournalFile = None,
    streams: Output,
) -> Result:
    """Ask for changes to a plan, and continue until the next plan is ready.

    Options:
      TEXT     What to change. Without a language model it becomes an open place of the plan.
      --about  The part to change; default: the pattern if the text mentions it, or the strategy.

    Examples:
      weft plan comment last 'let a second person review the text'
      weft plan comment last 'two agents should answer, and a third compare' --about pattern
    """
    read_message(text, "describe what to change")
    part = commented_part(text, about)
    answer: dict[str, Json] = {"plan_acceptance": ADJUST, "about": part, "comments": text}
    return _decide(streams, journal, run, answer, Wishes(until="plan", output=output), None)


@command
def edit(
    run: RunName,
    /,
    *,
    from_: Path | None = None,
    journal: JournalFile = None,
    streams: Output,
) -> Result:
    """Edit a plan in $EDITOR; if it is complete, it is the plan of the next round.

    Options:
      --from FILE  Take the plan in this file, YAML or JSON, instead of opening an editor.

    Examples:
      weft plan edit last
      weft plan show last --yaml > plan.yaml
      weft plan edit last --from plan.yaml
    """
    location = locate_journal(streams, journal, must_exist=True)
    row, generation = _read(location, run)
    present = _round(row, generation, None)
    if from_ is None:
        text = _edited(plan_text(present.plan), present.plan.strategy.workflow_name)
        plan = read_plan("the edited plan", text)
    else:
        text = read_text_file(from_, "name a plan in YAML or JSON")
        given = documents.read(str(from_), text.encode()).data
        if isinstance(given, dict) and "steps" in given:
            raise usage(f"{from_} is a form, not a plan", f"weft generate --form {from_}")
        plan = read_plan(str(from_), text)
    if plan_hash(plan) == present.hash:
        raise usage(f"the plan of run {row.run} is the same", "change something, then try again")
    answer: dict[str, Json] = {
        "plan_acceptance": EDITED,
        "plan": plan.model_dump(mode="json", by_alias=True),
    }
    return _decide(streams, journal, row.run, answer, Wishes(until="plan"), present.hash)


def _edited(text: str, name: str) -> str:
    """Return a text as it is after it was edited; raises if there is no editor."""
    settings = read_environment()
    editor = settings.get("VISUAL") or settings.get("EDITOR")
    if not editor:
        raise setup(
            "no editor is set", "export EDITOR=nano, or edit a file: weft plan edit --from FILE"
        )
    with tempfile.TemporaryDirectory(prefix="weft-") as folder:
        file = Path(folder) / f"{slug(name)}.yaml"
        file.write_text(text, encoding="utf-8")
        done = subprocess.run([*shlex.split(editor), str(file)], check=False)  # noqa: S603 - the user's own editor
        if done.returncode:
            raise usage(f"{editor} ended with {done.returncode}; the plan is unchanged")
        return file.read_text(encoding="utf-8")


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
            given = (named or plan.hash).lower()
            if len(given) < _LEAST or not plan.hash.startswith(given):
                raise conflict(
                    f"{named} is not the hash of the plan of run {row.run}, which is {plan.hash}",
                    f"look at the plan: weft plan show {row.run}{session.location.options}",
                )
            if answer["plan_acceptance"] == ACCEPTED and not wishes.skeleton:
                _require_complete(plan.plan, row, session.location)
            session.run, session.printed = row.run, row.seq
            async with subscribed(host, row.run, after=row.seq) as news:
                value = {**answer, "plan_hash": plan.hash}
                await host.deliver(row.run, Answer(request.id, value), scope=command_scope())
                stopped = await follow_generation(host, session, person, news, wishes)
        commented = plan.hash if wishes.until == "plan" else ""
        done = replace(wishes, commented=commented)
        return await close_generation(session, done, stopped=stopped)

    return run_session(session, work)


def _require_complete(plan: ActionPlan, row: RunRow, location: JournalLocation) -> None:
    """Refuse to approve a skeleton."""
    places = open_places(plan)
    if places:
        raise usage(
            "the plan is a skeleton",
            *places,
            f"edit it: weft plan edit {row.run}{location.options}",
            f"as it is: weft plan approve {row.run} --skeleton{location.options}",
        )


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
    asked = await host.requests(scope=command_scope(), run=row.run)
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
