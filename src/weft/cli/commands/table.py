"""The verbs of `weft`, as a table: what a help page says without loading any of them."""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Verb:
    """One verb: its name, what is written after it, what it does, and how it is used."""

    name: str
    usage: str
    help: str
    examples: tuple[str, ...]
    #: The module in this folder and the function, if not both are called as the command.
    place: str = ""
    #: The verbs it consists of; then it does nothing itself.
    parts: "tuple[Verb, ...]" = ()

    @property
    def target(self) -> str:
        """Where the function stands that carries the verb out."""
        return f"weft.cli.commands.{self.place or f'{self.name}:{self.name}'}"


_RUNS: Final = (
    Verb(
        "list",
        "[OPTIONS]",
        "List runs, newest first.",
        ("weft runs list", "weft runs list --status waiting --workflow Returns"),
        "runs:list_runs",
    ),
    Verb(
        "show",
        "RUN [OPTIONS]",
        "Show one run, what it asks, and how that is answered.",
        ("weft runs show last",),
        "runs:show",
    ),
    Verb(
        "tail",
        "RUN [OPTIONS]",
        "Print the events of a run, and go on as they come until it has ended.\n\n"
        "Exits with 4 where the run waits for a person and nobody is there.",
        ("weft runs tail last", "weft runs tail last --after 20 --json"),
        "runs:tail",
    ),
    Verb(
        "cancel",
        "RUN [OPTIONS]",
        "End a run now, or after the turn under way.",
        ("weft runs cancel last", "weft runs cancel last --drain"),
        "runs_control:cancel",
    ),
    Verb(
        "resume",
        "RUN [OPTIONS]",
        "Take up one run that had something to do when its process ended.\n\n"
        "Nothing else takes up runs of itself. Be sure that no other process works on it.",
        ("weft runs resume last",),
        "runs_control:resume",
    ),
    Verb(
        "answer",
        "RUN [QUESTION] [TEXT] [OPTIONS]",
        "Answer a question of a run, and go along with it; without an answer, ask for it.",
        (
            "weft runs answer last 'My invoice is wrong'",
            """weft runs answer last --json-value '{"approved": true}'""",
            "weft runs answer last      asks with a form",
        ),
        "runs_control:answer",
    ),
    Verb(
        "prune",
        "--older-than SPAN [OPTIONS]",
        "Remove runs that ended long ago.",
        ("weft runs prune --older-than 30d --dry-run", "weft runs prune --older-than 2w --yes"),
        "runs:prune",
    ),
)

VERBS: Final = (
    Verb(
        "init",
        "[DIR] [OPTIONS]",
        "Make a workspace with two example packages.",
        ("weft init shop", "weft init shop --force      write the examples anew"),
        "create:init",
    ),
    Verb(
        "new",
        "NAME [OPTIONS]",
        "Make a package from the template of a pattern.",
        ("weft new Returns --pattern 6", "weft new Returns --pattern FeedbackLoop"),
        "create:new",
    ),
    Verb(
        "check",
        "[PATHS...] [OPTIONS]",
        "Check packages and say how to mend them.",
        (
            "weft check",
            "weft check Returns --fix",
            "weft check --select HAND,EXPO003 --format concise",
            "weft check --format sarif > weft.sarif",
        ),
    ),
    Verb(
        "explain",
        "[CODE] [OPTIONS]",
        "Explain a code: what it means, why it matters, how to mend it.",
        ("weft explain HAND001", "weft explain HAND", "weft explain --all --format markdown"),
        "reference:explain",
    ),
    Verb(
        "diagram",
        "NAME [OPTIONS]",
        "Draw a workflow.",
        ("weft diagram Returns", "weft diagram Returns --kind sequence --format svg -o out.svg"),
    ),
    Verb(
        "run",
        "NAME [MESSAGE] [OPTIONS]",
        "Run a workflow: what agents say on stdout, what they do on stderr.\n\n"
        "Runs of other processes are left alone; take one up with `weft runs resume`. With --json, "
        "one line for each event and at last one for the run. Exits with 4 where a question is "
        "open and nobody is there to be asked.",
        (
            "weft run HelloWorld hello --model sample",
            "weft run CustomerSupportRouter 'I was charged twice' --set urgency=high",
            "weft run HelloWorld hello --model openai:gpt-5-mini --json",
        ),
    ),
    Verb(
        "chat",
        "[NAME] [OPTIONS]",
        "Talk with a workflow; without a terminal, every line of stdin is a message.\n\n"
        "A backslash at the end of a line goes on in the next. Questions of UI tools are asked as "
        "a form; their answer may be one line of JSON. Leave with Ctrl-C: the run waits, and goes "
        "on with --run. With --json, one line for each event and at last one for the run.",
        (
            "weft chat HelloWorld --model sample",
            "weft chat HelloWorld --model you      you answer for the model",
            "weft chat --run last",
            "printf 'hello\\nbye\\n' | weft chat HelloWorld",
        ),
        "run:chat",
    ),
    Verb(
        "runs",
        "COMMAND [OPTIONS]",
        "List, show, follow, answer, end and remove runs.",
        ("weft runs list", "weft runs show last"),
        parts=_RUNS,
    ),
    Verb(
        "inspect",
        "RUN[@TURN] [OPTIONS]",
        "Show what happened in a run and why, or what an agent was sent in a turn.",
        ("weft inspect last", "weft inspect last@2", "weft inspect last@3 --against 2"),
    ),
    Verb(
        "replay",
        "RUN [OPTIONS]",
        "Tell a run again from its journal, check it, or take a turn anew as a fork.",
        (
            "weft replay last",
            "weft replay last --check",
            "weft replay last --fork 2 --set urgency=high --model sample",
        ),
        "inspect:replay",
    ),
    Verb(
        "migrate",
        "[PATHS...] [OPTIONS]",
        "Rewrite older spellings to the present one.",
        ("weft migrate --dry-run", "weft migrate Returns"),
    ),
    Verb(
        "schema",
        "[NAME] [OPTIONS]",
        "Print the JSON Schemas of package files.",
        ("weft schema", "weft schema agents", "weft schema --write schemas"),
        "reference:schema",
    ),
    Verb(
        "export",
        "NAME [OPTIONS]",
        "Write a package to a zip file with a manifest of hashes.",
        ("weft export Returns", "weft export Returns -o returns.zip"),
        "archive:export",
    ),
    Verb(
        "import",
        "FILE [OPTIONS]",
        "Install or update a package from a zip file.",
        (
            "weft import returns.zip --dry-run",
            "weft import returns.zip --force      replaces own changes, keeps a backup",
        ),
        "archive:import_",
    ),
    Verb(
        "doctor",
        "[OPTIONS]",
        "Look at the setup and name the command that mends it.",
        ("weft doctor",),
    ),
    Verb(
        "completion",
        "SHELL",
        "Print a script that lets a shell complete weft commands.",
        (
            'eval "$(weft completion bash)"      in ~/.bashrc',
            'eval "$(weft completion zsh)"       in ~/.zshrc, after compinit',
            "weft completion fish > ~/.config/fish/completions/weft.fish",
            "weft completion powershell | Out-String | Invoke-Expression      in $PROFILE",
        ),
        "reference:completion",
    ),
)

VERB_NAMES: Final = tuple(verb.name for verb in VERBS)
