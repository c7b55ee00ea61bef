"""weft generate: from a brief to a plan to a package, with the agents of the Generator."""

import re
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Final, cast

from cyclopts import Parameter

from weft.app.generation import (
    GENERATOR,
    StepName,
    answer_fields,
    plan_values,
    read_plan,
)
from weft.cli.chat.conversation import Session, subscribed
from weft.cli.chat.follow_run import interactive_host, run_session
from weft.cli.chat.person import Person, stdin_is_terminal
from weft.cli.failure import CommandFailed, Exit, Failure, did_you_mean, setup, usage
from weft.cli.generation import (
    PackagesFolder,
    close_generation,
    follow_generation,
    require_generation,
)
from weft.cli.hosting import JournalFile, find_run, locate_journal
from weft.cli.options import Output, command
from weft.cli.promotion import Wishes, output_folder
from weft.cli.results import Result
from weft.cli.scope import command_scope
from weft.cli.starting import find_runnable, read_message, read_text_file, start_run
from weft.cli.streams import Streams
from weft.errors import SetupError, UsageError
from weft.findings import Json
from weft.generator.forms.form import form_plan, read_form
from weft.ids import nearest
from weft.packages.text import documents
from weft.runtime.host import Host
from weft.spec.plan import ActionPlan

#: The key of a difference from the plan.
_QUESTION: Final = re.compile(r"[A-Z]+\d{3}-[0-9a-f]+")

#: The suffixes of data files; any other file is a brief in words.
_DATA: Final = (".json", ".yaml", ".yml")


@command
def generate(  # noqa: PLR0913 - its options
    brief: str | None = None,
    /,
    *,
    from_: Annotated[Path | None, Parameter(allow_leading_hyphen=True)] = None,
    form: Path | None = None,
    answers: Path | None = None,
    approve: bool = False,
    skeleton: bool = False,
    promote: bool = False,
    update: bool = False,
    until: StepName | None = None,
    output: PackagesFolder = None,
    run: str | None = None,
    take_over: bool = False,
    model: str | None = None,
    journal: JournalFile = None,
    streams: Output,
) -> Result:
    """Design a workflow with you, and write its package after you approve the plan.

    This is a run of the package Generator: an interview, a plan, your approval, the files, checks
    and repairs, your approval. Without a language model, a form is compiled to a package, and a
    brief to a skeleton with open places. A package generated before from the same brief or plan is
    updated; your changes and what the plan did not change are kept. Exits with 1 if the package has
    errors, with 4 if a question is open and stdin is not a terminal, with 7 if a package is in the
    way or the same lines were changed.

    Options:
      BRIEF           What the workflow should do, in your words.
      --from FILE     Read the brief from a text file or from stdin (-), or an action plan from a
                      JSON file.
      --form FILE     Compile a form: the workflow step by step, as YAML or JSON.
      --answers FILE  Answers by field, as JSON or YAML; also `KEY: reason` for differences from
                      the plan.
      --approve       Run without prompts: accept the defaults, the plan and the package.
      --skeleton      With --approve, --promote or --answers: also accept a skeleton.
      --promote       Promote the package without asking.
      --update        Also update a package that was generated from another plan.
      --until         Stop after this step.
      --run RUN       Continue this generation: its id, its end, or last.
      --take-over     Also if another process works on the run.
      --model NAME    Model of every agent: PROVIDER:MODEL, designer, you, replay:RUN, or
                      replay:FILE.yaml; the designer replaces what it cannot do.

    Examples:
      weft generate --form clinic.yaml --approve
      weft generate --from brief.txt --model openai:gpt-5-mini --approve
      weft generate 'Route questions of customers to billing or tech' --approve --skeleton
      weft generate --from brief.txt --answers answers.yaml --until plan
      weft generate --run last      continues one that waits or was interrupted
      weft generate --from workflows/Returns/action_plan.json      after changing the plan
    """
    given_in = [
        name for name, value in (("the brief", brief), ("--from", from_), ("--form", form)) if value
    ]
    if run is not None and (given_in or model is not None):
        hint = "leave out the brief, --from, --form and --model"
        raise usage("--run continues a generation", hint)
    if take_over and run is None:
        raise usage("--take-over needs --run", "weft generate --run RUN --take-over")
    if len(given_in) > 1:
        raise usage(f"{' and '.join(given_in)} exclude each other", "keep one of them")
    if skeleton and not (approve or promote or answers):
        hint = "weft generate BRIEF --approve --skeleton"
        raise usage("--skeleton needs --approve, --promote or --answers", hint)
    package = find_runnable(streams, GENERATOR)
    known = answer_fields(package.spec)
    given = {} if answers is None else _read_answers(answers, known)
    wishes = Wishes(
        answers=given,
        approve=approve,
        skeleton=skeleton,
        promote=promote,
        update=update,
        until=until,
        output=output,
    )
    message, plan = (brief, None) if from_ is None else _read_source(from_)
    if form is not None:
        message, plan = _read_form(form)
    session = Session(streams, locate_journal(streams, journal, must_exist=run is not None))
    session.command = "generate --run"
    _require_folder(output_folder(session.location, output))
    if run is None:
        message = _first_message(message, streams, approve=approve)

    async def work(person: Person) -> Result:
        async with interactive_host(session, person, 0) as host:
            if run is not None:
                stopped = await _continue(host, session, person, wishes, run, take_over=take_over)
            else:
                values = None if plan is None else plan_values(plan)
                with _without_key():
                    session.run = await start_run(
                        host, streams, package, message=message, values=values, model=model
                    )
                async with subscribed(host, session.run) as news:
                    stopped = await follow_generation(host, session, person, news, wishes)
        return await close_generation(session, wishes, stopped=stopped)

    return run_session(session, work)


@contextmanager
def _without_key() -> Generator[None]:
    """Add the designer, which needs no key, to the hints about a model."""
    try:
        yield
    except SetupError as error:
        # Without the hint about the sample model, which is of no use here.
        hint = (error.hint or "").partition(";")[0]
        rules = "design it without a language model: --model designer"
        raise setup(str(error), *filter(None, (hint, rules))) from error


async def _continue(
    host: Host, session: Session, person: Person, wishes: Wishes, typed: str, *, take_over: bool
) -> bool:
    """Continue a generation that waits, was interrupted or has ended."""
    row = await find_run(host, typed, workflow=GENERATOR)
    generation = await require_generation(host, row)
    if wishes.until is not None and generation.is_past(wishes.until):
        raise usage(
            f"run {row.run} is past the step {wishes.until}",
            "name a later step, or leave out --until",
        )
    session.run, session.printed = row.run, row.seq
    async with subscribed(host, row.run, after=row.seq) as news:
        if row.status == "running":
            await host.resume(row.run, scope=command_scope(), take_over=take_over, streamed=True)
        return await follow_generation(host, session, person, news, wishes)


def _first_message(message: str | None, streams: Streams, *, approve: bool) -> str | None:
    """Return the brief; without one, a person must be there to be asked."""
    if message is not None:
        if not message.strip():
            raise usage("the brief is empty", "describe what the workflow should do")
        return read_message(message)
    if approve or streams.settings.json or not stdin_is_terminal():
        raise usage(
            "there is no brief",
            "describe the workflow: weft generate 'Answer questions of customers'",
            "or name a file, - for stdin: weft generate --from FILE",
        )
    return None


def _read_source(file: Path) -> tuple[str, ActionPlan | None]:
    """Return the first message and the plan of a file; a text file is a brief."""
    text = read_text_file(file, "name a text file, or the action_plan.json of a package")
    if file.suffix.lower() not in _DATA:
        if not text.strip():
            raise usage(f"{file} is empty", "describe in it what the workflow should do")
        return text, None
    plan = read_plan(str(file), text)
    return f"The plan is given: {plan.strategy.workflow_name}", plan


def _read_form(file: Path) -> tuple[str, ActionPlan]:
    """Return the first message and the plan of a form."""
    text = read_text_file(file, "name a form in YAML or JSON: steps, who does each, what follows")
    try:
        plan = form_plan(read_form(str(file), text))
    except UsageError as error:
        count = len(error.findings)
        said = "there is a mistake" if count == 1 else f"there are {count} mistakes"
        failure = Failure(Exit.USAGE, f"{said} in {file}", findings=error.findings)
        raise CommandFailed(failure) from error
    return f"The form is given: {plan.strategy.workflow_name}", plan


def _read_answers(file: Path, known: Mapping[str, Mapping[str, Any]]) -> dict[str, Json]:
    """Return the answers in a file by field."""
    text = read_text_file(file, "name a JSON or YAML file with answers by field")
    document = documents.read(str(file), text.encode())
    if not document.ok:
        errors = "; ".join(f"{each.place}: {each.message}" for each in document.findings)
        raise usage(f"cannot read {file}: {errors}", "write fields with their answers")
    found = cast("dict[str, Json]", document.data)
    if type(found) is not dict:
        raise usage(f"{file} has no fields", f"write some of: {', '.join(known)}")
    return {name: _answer(file, name, value, known) for name, value in found.items()}


def _answer(file: Path, name: str, value: Json, known: Mapping[str, Mapping[str, Any]]) -> Json:
    if _QUESTION.fullmatch(name) and isinstance(value, str) and value.strip():
        return value
    if name not in known:
        hints = did_you_mean(nearest(name, known))
        raise usage(f"{file}: unknown field {name}", *hints, f"available: {', '.join(known)}")
    choices = known[name].get("enum")
    if choices and value not in choices:
        raise usage(
            f"{file}: invalid value {value!r} for {name}", f"write one of: {', '.join(choices)}"
        )
    texts = cast("list[Json]", value) if isinstance(value, list) else [value]
    if not all(isinstance(text, str) for text in texts):
        raise usage(f"{file}: {name} is not text", "write text, or a list of texts")
    return ", ".join(map(str, texts))


def _require_folder(folder: Path) -> None:
    """Refuse a path that cannot be a folder, before anything starts."""
    paths = (folder, *folder.parents)
    blocked = next((path for path in paths if path.exists() and not path.is_dir()), None)
    if blocked is not None:
        raise usage(f"{blocked} is a file, not a folder for packages", "name another: -o DIR")
