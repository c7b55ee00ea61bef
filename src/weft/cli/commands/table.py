"""The commands of `weft`, as a table: what a help page says without loading any of them."""

from typing import Final

from weft.cli.commands.command import Command
from weft.cli.commands.table_generator import GENERATE, PLAN
from weft.cli.commands.table_retrieval import COLLECTION, EMBEDDINGS

_RUNS: Final = (
    Command(
        "list",
        "[OPTIONS]",
        "List runs, newest first.",
        ("weft runs list", "weft runs list --status waiting --workflow Returns"),
        "runs:list_runs",
    ),
    Command(
        "show",
        "RUN [OPTIONS]",
        "Show one run, what it asks, and how that is answered.",
        ("weft runs show last",),
        "runs:show",
    ),
    Command(
        "tail",
        "RUN [OPTIONS]",
        "Print the events of a run, and follow it until it has ended.\n\n"
        "Exits with 4 where the run waits for a person and stdin is not a terminal.",
        ("weft runs tail last", "weft runs tail last --after 20 --json"),
        "runs:tail",
    ),
    Command(
        "cancel",
        "RUN [OPTIONS]",
        "End a run now, or after its current turn.",
        ("weft runs cancel last", "weft runs cancel last --drain"),
        "runs_control:cancel",
    ),
    Command(
        "resume",
        "RUN [OPTIONS]",
        "Continue a run that had work to do when its process ended.\n\n"
        "No run is continued automatically. Make sure that no other process works on it.",
        ("weft runs resume last",),
        "runs_control:resume",
    ),
    Command(
        "answer",
        "RUN [QUESTION] [TEXT] [OPTIONS]",
        "Answer a question of a run, and follow it; without an answer, ask for one.",
        (
            "weft runs answer last 'My invoice is wrong'",
            """weft runs answer last --json-value '{"approved": true}'""",
            "weft runs answer last      asks with a form",
        ),
        "runs_control:answer",
    ),
    Command(
        "prune",
        "--older-than SPAN [OPTIONS]",
        "Remove runs that ended long ago.",
        ("weft runs prune --older-than 30d --dry-run", "weft runs prune --older-than 2w --yes"),
        "runs:prune",
    ),
)

_DOCUMENTS: Final = (
    Command(
        "list",
        "[COLLECTION] [OPTIONS]",
        "List collections, or the documents of one.",
        ("weft documents list", "weft documents list Customers"),
        "documents:list_documents",
    ),
    Command(
        "get",
        "COLLECTION KEY [OPTIONS]",
        "Print the document with a key.",
        ("weft documents get Customers ada",),
        "documents:get",
    ),
    Command(
        "find",
        "COLLECTION [QUERY] [OPTIONS]",
        "Print the document that fits a query, the one written last of several.\n\n"
        "A query has fields, and operators $eq $ne $gt $gte $lt $lte $in $exists $and $or.",
        ("""weft documents find Orders '{"status": "open", "total": {"$lt": 50}}'""",),
        "documents:find",
    ),
    Command(
        "put",
        "COLLECTION JSON|@FILE [OPTIONS]",
        "Set fields of a document, or make it.",
        ("""weft documents put Customers '{"tier": "gold"}' --key sam""",),
        "documents:put",
    ),
    Command(
        "import",
        "FILE [OPTIONS]",
        "Put the documents of a file.\n\n"
        "A list in JSON, or a document in each line. Without --collection each is an object with "
        "`collection` and `document`. A document without an _id gets one made of what is in it, so "
        "importing a file twice changes nothing.",
        (
            "weft documents import documents/demo.jsonl",
            "weft documents import customers.json --collection Customers",
        ),
        "documents:import_documents",
    ),
    Command(
        "delete",
        "COLLECTION KEY [OPTIONS]",
        "Remove a document.",
        ("weft documents delete Customers sam",),
        "documents:delete",
    ),
)

_EMIT: Final = (
    Command(
        "assemblers",
        "PACKAGE [OPTIONS]",
        "Write what the steps of a flow are shown as Python classes.\n\n"
        "Each does what its step declares; named as the assembler of the step's context, in place "
        "of its sources, it shows the same.",
        (
            "weft emit assemblers Research",
            "weft emit assemblers Research -o workflows/Research/tools/contexts.py",
        ),
        "emit:assemblers",
    ),
)

_BOARD: Final = (
    Command(
        "publish",
        "NAME TYPE [FIELD=VALUE...|JSON] [OPTIONS]",
        "Publish an artifact, and follow its run until it is idle.\n\n"
        "What agents publish goes to stdout, what they do to stderr. With --json, one line for "
        "what was published, one for each event and at last one for the run.",
        (
            "weft board publish News Topic title=Rain",
            """weft board publish News Topic '{"title": "Rain"}' --tag weather --model sample""",
            "weft board publish News Lead --input lead.json --correlation rain --to Editor",
        ),
        "board_publish:publish",
    ),
    Command(
        "list",
        "NAME [OPTIONS]",
        "List artifacts, newest first.",
        ("weft board list News", "weft board list News --type Lead --as Editor --since 2h"),
        "board:list_artifacts",
    ),
    Command(
        "show",
        "NAME ARTIFACT [OPTIONS]",
        "Show an artifact with its payload, who may see it, and whom it has woken.",
        ("weft board show News 4qdfmj41.12",),
        "board:show",
    ),
    Command(
        "why",
        "NAME ARTIFACT AGENT [OPTIONS]",
        "Say why an agent can or cannot see an artifact.",
        ("weft board why News 4qdfmj41.12 Editor",),
        "board:why",
    ),
    Command(
        "missed",
        "NAME [RUN] [OPTIONS]",
        "List artifacts that did not come to what they were collected for, and why.",
        ("weft board missed News", "weft board missed News last"),
        "board:missed",
    ),
    Command(
        "flush",
        "NAME RUN [OPTIONS]",
        "Let everything be handled now that was collected for batches, and follow the run.",
        ("weft board flush News last",),
        "board_publish:flush",
    ),
)

COMMANDS: Final = (
    Command(
        "init",
        "[DIR] [OPTIONS]",
        "Make a workspace with three example packages.",
        ("weft init shop", "weft init shop --force      write the examples anew"),
        "create:init",
    ),
    Command(
        "new",
        "NAME [OPTIONS]",
        "Make a package from the template of a pattern.",
        ("weft new Returns --pattern 6", "weft new Returns --pattern FeedbackLoop"),
        "create:new",
    ),
    GENERATE,
    Command(
        "plan",
        "COMMAND [OPTIONS]",
        "Show, compare, approve and comment on the plans of generations.",
        ("weft plan show last", "weft plan approve last"),
        parts=PLAN,
    ),
    Command(
        "check",
        "[PATHS...] [OPTIONS]",
        "Check packages and say how to fix them.",
        (
            "weft check",
            "weft check Returns --fix",
            "weft check --select HAND,EXPO003 --format concise",
            "weft check --format sarif > weft.sarif",
        ),
    ),
    Command(
        "explain",
        "[CODE] [OPTIONS]",
        "Explain a code: what it means, why it matters, how to fix it.",
        ("weft explain HAND001", "weft explain HAND", "weft explain --all --format markdown"),
    ),
    Command(
        "diagram",
        "NAME [OPTIONS]",
        "Draw a workflow.",
        ("weft diagram Returns", "weft diagram Returns --kind sequence --format svg -o out.svg"),
    ),
    Command(
        "run",
        "NAME [MESSAGE] [OPTIONS]",
        "Run a workflow: what agents say on stdout, what they do on stderr.\n\n"
        "Runs of other processes are left alone; continue one with `weft runs resume`. With "
        "--json, one line for each event and at last one for the run. Exits with 4 where a "
        "question is open and stdin is not a terminal.",
        (
            "weft run HelloWorld hello --model sample",
            "weft run CustomerSupportRouter 'I was charged twice' --set urgency=high",
            "weft run HelloWorld hello --model openai:gpt-5-mini --json",
        ),
    ),
    Command(
        "chat",
        "[NAME] [OPTIONS]",
        "Talk with a workflow; without a terminal, every line of stdin is a message.\n\n"
        "A backslash at the end of a line continues it in the next. Questions of UI tools are "
        "asked as a form; their answer may be one line of JSON. Leave with Ctrl-C: the run waits; "
        "continue it with --run. With --json, one line for each event and at last one for the run.",
        (
            "weft chat HelloWorld --model sample",
            "weft chat HelloWorld --model you      you answer for the model",
            "weft chat --run last",
            "printf 'hello\\nbye\\n' | weft chat HelloWorld",
        ),
        "run:chat",
    ),
    Command(
        "runs",
        "COMMAND [OPTIONS]",
        "List, show, follow, answer, end and remove runs.",
        ("weft runs list", "weft runs show last"),
        parts=_RUNS,
    ),
    Command(
        "board",
        "COMMAND [OPTIONS]",
        "Publish, list, show and explain artifacts of a board.",
        ("weft board publish News Topic title=Rain", "weft board list News"),
        parts=_BOARD,
    ),
    Command(
        "documents",
        "COMMAND [OPTIONS]",
        "List, print, find, put, import and remove documents.",
        ("weft documents list", "weft documents get Customers ada"),
        parts=_DOCUMENTS,
    ),
    Command(
        "collection",
        "COMMAND [OPTIONS]",
        "Make collections of passages from files, and search them.",
        ("weft collection add Handbook docs", "weft collection search Handbook 'days off'"),
        parts=COLLECTION,
    ),
    Command(
        "embeddings",
        "COMMAND [OPTIONS]",
        "Install the model that collections compare meanings with.",
        ("weft embeddings install",),
        parts=EMBEDDINGS,
    ),
    Command(
        "inspect",
        "RUN[@TURN] [OPTIONS]",
        "Show what happened in a run and why, or what an agent was sent in a turn.",
        ("weft inspect last", "weft inspect last@2", "weft inspect last@3 --against 2"),
    ),
    Command(
        "replay",
        "RUN [OPTIONS]",
        "Show a run again from its journal, check it, or repeat a turn as a fork.",
        (
            "weft replay last",
            "weft replay last --check",
            "weft replay last --fork 2 --set urgency=high --model sample",
        ),
        "inspect:replay",
    ),
    Command(
        "migrate",
        "[PATHS...] [OPTIONS]",
        "Rewrite older spellings to the present one.",
        ("weft migrate --dry-run", "weft migrate Returns"),
    ),
    Command(
        "emit",
        "COMMAND [OPTIONS]",
        "Write what a package declares as code.",
        ("weft emit assemblers Research",),
        parts=_EMIT,
    ),
    Command(
        "schema",
        "[NAME] [OPTIONS]",
        "Print the JSON Schemas of package files.",
        ("weft schema", "weft schema agents", "weft schema --write schemas"),
    ),
    Command(
        "export",
        "NAME [OPTIONS]",
        "Write a package to a zip file with a manifest of hashes.",
        ("weft export Returns", "weft export Returns -o returns.zip"),
        "archive:export",
    ),
    Command(
        "import",
        "FILE [OPTIONS]",
        "Install or update a package from a zip file.",
        (
            "weft import returns.zip --dry-run",
            "weft import returns.zip --force      replaces own changes, keeps a backup",
        ),
        "archive:import_",
    ),
    Command(
        "doctor",
        "[OPTIONS]",
        "Look at the setup and name the command that fixes it.",
        ("weft doctor",),
    ),
    Command(
        "completion",
        "SHELL",
        "Print a script that lets a shell complete weft commands.",
        (
            'eval "$(weft completion bash)"      in ~/.bashrc',
            'eval "$(weft completion zsh)"       in ~/.zshrc, after compinit',
            "weft completion fish > ~/.config/fish/completions/weft.fish",
            "weft completion powershell | Out-String | Invoke-Expression      in $PROFILE",
        ),
        "schema:completion",
    ),
)

COMMAND_NAMES: Final = tuple(command.name for command in COMMANDS)
