"""The end of a command about a generation: packages take their place; what comes next is said."""

from collections.abc import Sequence
from pathlib import Path
from shlex import quote

from weft.app.folders import LOCAL
from weft.app.generation import APPROVALS, DOWNLOAD, Generation, part_makers, read_generation
from weft.app.promotion import Promotion, is_promoted, prepare, promote, stage
from weft.cli.chat.conversation import Session
from weft.cli.failure import CommandFailed, Exit, Failure, code_of
from weft.cli.formats.documents import document
from weft.cli.generating import IGNORED, Wishes
from weft.cli.hosting import JournalLocation, answer_schemas, hosted
from weft.cli.pages.generation import (
    change_data,
    change_note,
    generation_data,
    report_lines,
)
from weft.cli.pages.runs import outcome_text
from weft.cli.streams import Streams
from weft.cli.text import clean
from weft.engine.events import Event
from weft.engine.rows import RequestRow, RunRow
from weft.packages.workspace import PACKAGES
from weft.wire.rows import run_data


async def close_generation(session: Session, wishes: Wishes, *, stopped: bool) -> Exit:
    """Stage what a generation offers, promote what was approved, and tell it all."""
    async with hosted(session.location, reading=True) as host:
        row = await host.run(session.run, scope=LOCAL)
        generation = read_generation(await host.state(session.run, scope=LOCAL))
        history = [it async for it in host.events(session.run, scope=LOCAL)]
        asked = await host.requests(scope=LOCAL, run=session.run)
        schemas = await answer_schemas(host, asked)
    made = part_makers(it for it in history if isinstance(it, Event))
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
        raise _refusal(promotion, row, wishes, location)
    promote(promotion)
    return promotion


def _is_wanted(generation: Generation, wishes: Wishes) -> bool:
    """Tell whether packages shall take their place; who declined before may change their mind."""
    anew = wishes.promote and wishes.answers.get("promotion") != "declined"
    return generation.promotion == "approved" or anew


def output_folder(location: JournalLocation, output: Path | None) -> Path:
    """Return the folder that packages are put into."""
    return location.workspace / PACKAGES if output is None else output


def how_to_promote(row: RunRow, generation: Generation, location: JournalLocation) -> str:
    """Return the command with which packages that are approved take their place; empty: none."""
    approved = row.outcome == "completed" and generation.promotion == "approved"
    if not approved or is_promoted(generation.bundle, location.workspace):
        return ""
    return f"{_again(row, Wishes(), location)} --promote"


def _again(row: RunRow, wishes: Wishes, location: JournalLocation) -> str:
    output = f" -o {quote(str(wishes.output))}" if wishes.output else ""
    return f"weft generate --run {row.run}{output}{location.options}"


def _refusal(
    promotion: Promotion, row: RunRow, wishes: Wishes, location: JournalLocation
) -> CommandFailed:
    again = f"{_again(row, wishes, location)} --promote"
    found = promotion.strangers or promotion.others
    places = f"{', '.join(map(str, found))} {'are' if len(found) > 1 else 'is'}"
    hint = (f"then: {again}",)
    if promotion.strangers:
        fact = f"{places} already there and not generated here"
        hint = ("move it away, or name another folder: -o DIR", *hint)
    elif promotion.others:
        fact = f"{places} already there, made from another plan"
        hint = (
            f"update it, with what you have changed kept: {again} --update",
            "or name a folder: -o DIR; or begin anew with a goal of two to four words: its name",
        )
    elif promotion.conflicts:
        fact = "the same lines were changed by hand and by the generation"
        staged = f".weft/generated/{row.run}"
        new = f"compare with the files in {staged} and take the new lines from there"
        hint = (new, f"{hint[0]}; then change them anew")
    else:
        fact = "what was changed by hand does not go with what is generated now"
    return CommandFailed(
        Failure(
            Exit.CONFLICT,
            f"{fact}; nothing was changed",
            cause=() if found else promotion.conflicts,
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
    asked: Sequence[RequestRow],
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
            streams.note(f"  promote: {_again(row, wishes, session.location)} --promote")
        streams.note(f"  inspect: weft inspect {run}{options}")
        return Exit.DONE
    _print_how_to_go_on(session, row, generation, asked, wishes, stopped=stopped)
    return _exit(row, stopped=stopped)


def _print_how_to_go_on(
    session: Session,
    row: RunRow,
    generation: Generation,
    asked: Sequence[RequestRow],
    wishes: Wishes,
    *,
    stopped: bool,
) -> None:
    """Say what a generation waits for, or after which step it was stopped, and what comes next."""
    streams, options = session.streams, session.location.options
    run, tool = row.run, asked[0].tool if asked else None
    output = f" -o {quote(str(wishes.output))}" if wishes.output else ""
    go_on = _again(row, wishes, session.location)
    commands: dict[str, str] = {}
    if tool in APPROVALS:
        fact = "the approval of its plan"
        commands["show"] = f"weft plan show {run}{options}"
        commands["approve"] = f"weft plan approve {run}{output}{options}"
        commands["comment"] = f"weft plan comment {run} TEXT{output}{options}"
    elif tool == DOWNLOAD:
        fact = "the approval of its packages"
        commands["promote"] = f"{go_on} --promote"
    elif asked:
        fact = "an answer to its interview" if tool else "a message"
        commands["answer"] = f"weft runs answer {run}{options}"
        commands["answers"] = f"{go_on} --answers FILE"
        commands["defaults"] = f"{go_on} --approve"
    else:
        fact = ""
    commands["go on"] = go_on
    if generation.rounds and generation.rounds[-1].hash == wishes.commented:
        streams.problem(IGNORED)
    if stopped:
        streams.note(f"run {run} is stopped after {wishes.until}")
    else:
        head = streams.paint_error(f"waiting[{code_of(Exit.WAITING)}]", "bold yellow")
        streams.problem(f"{head}: run {run} waits for {fact}")
    tell = streams.note if stopped else streams.problem
    for name, command in commands.items():
        tell(f"  {name + ':':<10}{command}")
