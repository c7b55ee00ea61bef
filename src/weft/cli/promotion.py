"""Promotion by commands: what a person has decided beforehand, and what prevents it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from shlex import quote
from typing import Final

from weft.app.generation import ACCEPTED, APPROVALS, DOWNLOAD, Generation, StepName
from weft.app.promotion import (
    REPORT_FILE,
    Promotion,
    is_promoted,
    prepare,
    promote,
    staged_bundle,
)
from weft.app.staged import staged_offer
from weft.cli.failure import CommandFailed, Exit, Failure, usage
from weft.cli.hosting import JournalLocation
from weft.cli.streams import Streams, clean
from weft.engine.rows import RunRow
from weft.findings import Json
from weft.packages.workspace import PACKAGES

#: How a difference from the plan is answered.
HOW_TO_ANSWER: Final = 'or say why a difference is meant, in --answers FILE: KEY: "because ..."'

#: How a package without open places is made.
HOW_TO_COMPLETE: Final = {
    "complete": "weft new NAME --form",
    "or": "weft generate BRIEF --model openai:gpt-5-mini",
}


@dataclass(frozen=True)
class Wishes:
    """What a person has decided before the generation asks."""

    #: Answers by field, to any request.
    answers: Mapping[str, Json] = field(default_factory=dict[str, Json])
    #: Run without prompts: accept the defaults, the plan and the package.
    approve: bool = False
    #: Also accept and promote a skeleton.
    skeleton: bool = False
    promote: bool = False
    #: Also update a package that was generated from another plan.
    update: bool = False
    until: StepName | None = None
    #: The folder for packages.
    output: Path | None = None
    #: The hash of the plan that was commented on.
    commented: str = ""

    def accepts(self, tool: str | None) -> bool:
        """Return whether what a tool asks about is accepted without a question."""
        if tool in APPROVALS:
            return self.approve or self.answers.get("plan_acceptance") == ACCEPTED
        if self.answers.get("promotion") == "declined":
            return False
        return self.approve or self.promote or self.answers.get("promotion") == "approved"

    def refuses(self, tool: str | None, generation: Generation) -> bool:
        """Return whether it would be accepted if it were not a skeleton."""
        return self.accepts(tool) and not self.skeleton and bool(generation.skeleton)


def promote_packages(
    streams: Streams,
    generation: Generation,
    row: RunRow,
    wishes: Wishes,
    location: JournalLocation,
    staged: Path | None,
) -> Promotion:
    """Promote the packages if that was approved; raises if something is in the way."""
    if staged is None or row.outcome != "completed" or not is_wanted(generation, wishes):
        return Promotion(())
    if generation.promotion != "approved" and wishes.refuses(DOWNLOAD, generation):
        again = f"{command_to_continue(row, wishes, location)} --promote --skeleton"
        complete = f"a complete package: {' or '.join(HOW_TO_COMPLETE.values())}"
        raise usage(
            "the package is a skeleton", complete, f"as it is: {again}", *generation.skeleton
        )
    if not generation.is_promotable:
        _check_again(streams, generation, row, staged, wishes)
    bundle, folder = (
        staged_bundle(generation.bundle, staged),
        output_folder(location, wishes.output),
    )
    promotion = prepare(
        bundle,
        folder,
        location.workspace,
        update=wishes.update,
        plan_given=generation.plan_given,
    )
    if not promotion.ok:
        raise _cannot_promote(promotion, row, wishes, location)
    promote(promotion)
    return promotion


def _check_again(
    streams: Streams, generation: Generation, row: RunRow, staged: Path, wishes: Wishes
) -> None:
    """Check packages that were refused, as they are now; raises if there is anything left.

    The report in the folder is written again.
    """
    answers = {key: str(text) for key, text in wishes.answers.items()}
    offer = staged_offer(generation.rounds[-1].plan, generation.bundle, staged, answers)
    report = "".join(f"{line}\n" for line in offer.report())
    (staged / REPORT_FILE).write_text(report, encoding="utf-8")
    for key, text in offer.questions.items():
        if answer := offer.answers.get(key):
            streams.note(clean(f"{text} Meant so: {answer}"))
    if not offer.promotable:
        hint = [f"repair the files in {staged}; {REPORT_FILE} lists what to do"]
        raise CommandFailed(
            Failure(
                Exit.FAILED,
                "the packages still have findings; nothing was changed",
                cause=tuple(f"{key}: {text}" for key, text in offer.unanswered.items()),
                hint=(*hint, HOW_TO_ANSWER) if offer.unanswered else tuple(hint),
                findings=offer.verdict.errors,
                run=row.run,
            )
        )


def is_wanted(generation: Generation, wishes: Wishes) -> bool:
    """Return whether packages shall be promoted; --promote overrides an earlier refusal."""
    now = wishes.promote and wishes.answers.get("promotion") != "declined"
    return generation.promotion == "approved" or now


def output_folder(location: JournalLocation, output: Path | None) -> Path:
    """Return the folder for packages."""
    return location.workspace / PACKAGES if output is None else output


def how_to_promote(row: RunRow, generation: Generation, location: JournalLocation) -> str:
    """Return the command that promotes approved packages; empty if there are none."""
    approved = row.outcome == "completed" and generation.promotion == "approved"
    if not approved or is_promoted(generation.bundle, location.workspace):
        return ""
    return f"{command_to_continue(row, Wishes(), location)} --promote"


def command_to_continue(row: RunRow, wishes: Wishes, location: JournalLocation) -> str:
    output = f" -o {quote(str(wishes.output))}" if wishes.output else ""
    return f"weft generate --run {row.run}{output}{location.options}"


def _cannot_promote(
    promotion: Promotion, row: RunRow, wishes: Wishes, location: JournalLocation
) -> CommandFailed:
    again = f"{command_to_continue(row, wishes, location)} --promote"
    found = promotion.strangers or promotion.others
    places = ", ".join(map(str, found))
    hint = (f"then: {again}",)
    if promotion.strangers:
        message = f"{places} already exists and was not generated here"
        hint = ("move it away, or name another folder: -o DIR", *hint)
    elif promotion.others:
        message = f"{places} already exists and was generated from another plan"
        hint = (
            f"update it and keep your changes: {again} --update",
            "or name a folder: -o DIR; or start again with a goal of two to four words: its name",
        )
    elif promotion.conflicts:
        message = "the same lines were changed by hand and by the generation"
        staged = f".weft/generated/{row.run}"
        new = f"compare with the files in {staged} and take the new lines from there"
        hint = (new, f"{hint[0]}; then change them again")
    else:
        message = "your changes do not fit the generated files"
    return CommandFailed(
        Failure(
            Exit.CONFLICT,
            f"{message}; nothing was changed",
            cause=() if found else promotion.conflicts,
            hint=hint,
            findings=promotion.errors,
            run=row.run,
        )
    )
