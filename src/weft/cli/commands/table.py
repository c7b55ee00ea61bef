"""The commands of `weft` as a table: what help pages print without importing the commands."""

import json
import re
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from inspect import cleandoc
from pathlib import Path
from textwrap import dedent
from typing import Any, Final


@dataclass(frozen=True, slots=True)
class HelpText:
    """The text of a help page, the labels of options with their help, and examples."""

    text: str
    options: dict[str, str]
    examples: tuple[str, ...]


def read_docstring(docstring: str) -> HelpText:
    """Return the help page in a docstring, which may have sections `Options:` and `Examples:`."""
    text: list[str] = []
    sections: dict[str, list[str]] = {}
    for paragraph in cleandoc(docstring).split("\n\n"):
        title, _, lines = paragraph.partition("\n")
        if title in ("Options:", "Examples:"):
            sections[title] = dedent(lines).splitlines()
        else:
            text.append(paragraph)
    options: dict[str, str] = {}
    for line in sections.get("Options:", ()):
        label, help_text = re.split(r"\s{2,}", line, maxsplit=1)
        label = label or next(reversed(options))  # The help of an option continues.
        options[label] = f"{options.get(label, '')} {help_text}".lstrip()
    return HelpText("\n\n".join(text), options, tuple(sections.get("Examples:", ())))


@dataclass(frozen=True, slots=True)
class Command:
    """One command. Its help page is the docstring of its function, unless `help` is given."""

    name: str
    help: str = ""
    examples: tuple[str, ...] = ()
    #: The module in this folder and the function; empty if both are called like the command.
    place: str = ""
    #: The subcommands; a command that has some does nothing itself.
    parts: "tuple[Command, ...]" = ()

    @property
    def target(self) -> str:
        """The function that performs the command, as `module:function`."""
        return f"weft.cli.commands.{self.place or f'{self.name}:{self.name}'}"

    def page(self) -> HelpText:
        """Return the help page; it may have to import the command."""
        if self.help:
            return HelpText(self.help, {}, self.examples)
        module, _, function = self.target.partition(":")
        return read_docstring(getattr(import_module(module), function).__doc__)

    def summary(self, path: str) -> str:
        """Return the first sentence of the help page, without importing the command."""
        kept = read_completion_data().get(path, {}).get("help", "")
        return kept or self.page().text.partition("\n\n")[0]


@cache
def read_completion_data() -> dict[str, Any]:
    """Return the options of every command; those of the empty name are global."""
    file = Path(__file__).parents[1] / "completion.json"
    return json.loads(file.read_text(encoding="utf-8"))


_RUNS: Final = (
    Command(
        "list",
        "List runs, newest first.",
        ("weft runs list", "weft runs list --status failed --workflow Returns"),
        "runs:list_runs",
    ),
    Command(
        "show",
        "Show one run, its open requests, and the commands that answer them.",
        ("weft runs show last",),
        "runs:show",
    ),
    Command(
        "tail",
        "Print the events of a run, and follow it until it ends.\n\n"
        "Exits with 4 if the run waits for a person and stdin is not a terminal.",
        ("weft runs tail last", "weft runs tail last --after 20 --json"),
        "runs:tail",
    ),
    Command(
        "cancel",
        "Stop a run now, or after its current turn.",
        ("weft runs cancel last", "weft runs cancel last --drain"),
        "runs:cancel",
    ),
    Command("resume", place="run:resume"),
    Command("answer", place="run:answer"),
    Command("save-test", place="test:save_test"),
    Command(
        "delete",
        "Delete runs that ended long ago.\n\n"
        "The journal file keeps its size; later runs reuse the free space.",
        ("weft runs delete --older-than 30d --dry-run", "weft runs delete --older-than 2w --yes"),
        "runs:delete",
    ),
)

_STORE: Final = (
    Command(
        "migrate",
        "Create the tables of the store, or migrate those of an older Weft.",
        ("weft store migrate", "weft store migrate --journal postgresql://weft@db/weft"),
        "store:migrate",
    ),
    Command(
        "check", "Read the whole store, and print problems.", ("weft store check",), "store:check"
    ),
    Command(
        "backup",
        "Copy the store to a SQLite file, with the runs in progress.\n\n"
        "Copying journal.db by hand loses recent events: SQLite keeps them in a second file.",
        ("weft store backup runs.db", "weft runs list --journal runs.db"),
        "store:backup",
    ),
    Command(
        "copy",
        "Copy a store into another one without rows, and verify the copy by hashes.\n\n"
        "Stop all workers first: runs that continue in both stores would be paid for twice.",
        ("weft store copy .weft/journal.db postgresql://weft@db/weft",),
        "store:copy",
    ),
)

COMMANDS: Final = (
    Command("init", place="create:init"),
    Command("new", place="create:new"),
    Command("generate"),
    Command(
        "plan",
        "Show, compare, approve, comment on and edit the plans of generations.",
        ("weft plan show last", "weft plan approve last"),
        parts=(
            Command("show", place="plan:show"),
            Command("diff", place="plan:diff"),
            Command("approve", place="plan:approve"),
            Command("comment", place="plan:comment"),
            Command("edit", place="plan:edit"),
        ),
    ),
    Command("check"),
    Command("test", place="test:run_tests"),
    Command("explain", place="reference:explain"),
    Command("diagram", place="packages:diagram"),
    Command("run"),
    Command("chat", place="run:chat"),
    Command(
        "runs",
        "List, show, follow, answer, stop and delete runs.",
        ("weft runs list", "weft runs show last"),
        parts=_RUNS,
    ),
    Command(
        "serve",
        "Serve the workspace over HTTP until SIGTERM or Ctrl-C.\n\n"
        "Prints the address of the page, which has a token that is valid once. Without other "
        "options it listens on this machine only, and performs runs itself.",
        ("weft serve", "weft serve --port 0 --no-open", "weft serve --no-work"),
    ),
    Command(
        "keys",
        "Make, list, rotate and delete API keys of the server.\n\n"
        "They are written to the store, for the operator of this machine. Over HTTP an "
        "administrator does the same: `/api/keys`.",
        ("weft keys create --role developer", "weft keys list"),
        parts=(
            Command("create", place="keys:create"),
            Command("list", place="keys:list_keys"),
            Command("rotate", place="keys:rotate"),
            Command("delete", place="keys:delete"),
        ),
    ),
    Command(
        "worker",
        "Work on runs of all tenants until SIGTERM or Ctrl-C.\n\n"
        "Claims runs that are due, also those of dead processes. When it is stopped, it finishes "
        "what is under way and releases its runs; a second signal stops it at once.",
        ("weft worker", "weft worker --drain 30 --verbose"),
    ),
    Command(
        "top",
        "Show workers, runs, turns, tools and models of a server, or of the store.\n\n"
        "In a terminal it is shown again every two seconds, until Ctrl-C. Turns, tools and models "
        "are those of the server's own process; of a store, those of its newest runs.",
        ("weft top", "weft top --server http://127.0.0.1:8765", "weft top --json"),
    ),
    Command(
        "store",
        "Create, check, back up and copy the store of all runs.",
        ("weft store check", "weft store backup runs.db"),
        parts=_STORE,
    ),
    Command(
        "board",
        "Publish, list, show and explain artifacts of a board.",
        ("weft board publish News Topic title=Rain", "weft board list News"),
        parts=(
            Command("publish", place="board_publish:publish"),
            Command("list", place="board:list_artifacts"),
            Command("show", place="board:show"),
            Command("why", place="board:why"),
            Command("missed", place="board:missed"),
            Command("flush", place="board_publish:flush"),
        ),
    ),
    Command(
        "documents",
        "List, print, find, put, import and delete documents.",
        ("weft documents list", "weft documents get Customers ada"),
        parts=(
            Command("list", place="documents:list_documents"),
            Command("get", place="documents:get"),
            Command("find", place="documents:find"),
            Command("put", place="documents:put"),
            Command("import", place="documents:import_documents"),
            Command("delete", place="documents:delete"),
        ),
    ),
    Command(
        "collection",
        "Create collections of passages from files, and search them.\n\n"
        "Collections of documents are another thing: see `weft documents`.",
        ("weft collection add Handbook docs", "weft collection search Handbook 'days off'"),
        parts=(
            Command("add", place="collection:add"),
            Command("search", place="collection:search"),
            Command("list", place="collection:list_collections"),
            Command("stats", place="collection:stats"),
            Command("delete", place="collection:delete"),
        ),
    ),
    Command(
        "embeddings",
        "Install the model that compares meanings in collections of passages.",
        ("weft embeddings install",),
        parts=(Command("install", place="collection:install"),),
    ),
    Command("inspect"),
    Command("replay", place="inspect:replay"),
    Command("migrate", place="packages:migrate"),
    Command(
        "emit",
        "Write declarations of a package as code.",
        ("weft emit assemblers Research",),
        parts=(Command("assemblers", place="packages:assemblers"),),
    ),
    Command("schema", place="reference:schema"),
    Command("export", place="packages:export"),
    Command("import", place="packages:import_"),
    Command(
        "doctor",
        "Check the setup, or a server, and print the commands that fix it.",
        ("weft doctor", "weft doctor --server http://127.0.0.1:8765"),
    ),
    Command("completion", place="reference:completion"),
)

COMMAND_NAMES: Final = tuple(command.name for command in COMMANDS)
