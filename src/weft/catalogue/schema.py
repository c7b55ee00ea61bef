"""Family SCHEMA: whether a file can be read, and whether what it holds has the right shape."""

from typing import Final

from weft.findings import Rule

RULES: Final[tuple[Rule, ...]] = (
    Rule(
        code="SCHEMA001",
        severity="error",
        title="File cannot be read",
        why=(
            "A package file must be an ordinary file inside its package folder, readable by you, "
            "at most 2 MiB long and saved as UTF-8 text without control characters. Anything else "
            "is refused before its content is looked at, so that a broken or hostile file can "
            "neither fill the memory nor reach outside the folder."
        ),
        fix=(
            "Save the file as UTF-8 from your editor. If it is a link that leads out of the "
            "package folder, put a copy in its place. If it is too large, it holds something that "
            "does not belong in a declaration: move it to a data file of your own."
        ),
        example="tools.json saved as UTF-16 by an editor, or tools.json -> /srv/common/tools.json",
    ),
    Rule(
        code="SCHEMA002",
        severity="error",
        title="File is not valid JSON or YAML",
        why=(
            "Text that breaks the rules of its format has no certain meaning. Weft does not guess "
            "what was meant: nothing in the file is used until it can be read as a whole."
        ),
        fix=(
            "Go to the line and column named in the finding. The usual causes are a missing comma, "
            "a quote or bracket that is not closed, single quotes in JSON, and a tab or a wrong "
            "indentation in YAML."
        ),
        example='{"name": "Router" "model": "default"}    (a comma is missing before "model")',
    ),
    Rule(
        code="SCHEMA003",
        severity="error",
        title="Key stands twice in one object",
        why=(
            "Most readers silently keep the last of two equal keys, so one of the two values is "
            "lost and nobody is told which. The author surely meant both or neither."
        ),
        fix="Keep one of the two entries, or give one of them another key.",
        example='{"max_turns": 20, "human_in_the_loop": true, "max_turns": 50}',
    ),
    Rule(
        code="SCHEMA004",
        severity="error",
        title="Content is beyond a limit",
        why=(
            "A file may nest at most 100 levels and hold at most 100,000 values, counted after "
            "YAML aliases are written out. Whole numbers must fit in 64 bits and other numbers "
            "must be finite, because no other program would read back the same value."
        ),
        fix=(
            "Flatten or split the structure. Write a number that is really a name, such as an "
            "account number, as text in quotes."
        ),
        example='{"account": 123456789012345678901234567890}',
    ),
    Rule(
        code="SCHEMA005",
        severity="error",
        title="YAML feature that JSON data cannot express",
        why=(
            "Every package file may be JSON or YAML and must mean the same in both. Tags, merge "
            "keys, keys that are not text and several documents in one file have no "
            "counterpart in JSON."
        ),
        fix=(
            "Remove the tag, write merged entries out in full, put a key such as 1 or true in "
            "quotes, and keep one document per file. Anchors and aliases may stay."
        ),
        example='1: first      write it as "1": first',
    ),
    Rule(
        code="SCHEMA006",
        severity="warning",
        title="JSON with comments or trailing commas",
        why=(
            "Weft reads such a file, but JSON knows neither, so other programs refuse it, and the "
            "comments are dropped when Weft rewrites the whole file."
        ),
        fix=(
            "Remove the comments and the commas before a closing bracket, or save the file as "
            "YAML, where comments are allowed."
        ),
        example='{"max_turns": 20,  // enough for one visit\n}',
    ),
    Rule(
        code="SCHEMA007",
        severity="error",
        title="Value of the wrong kind",
        why=(
            "A value that is not what the key stands for would be guessed at when the workflow "
            "runs. Weft guesses nothing and converts nothing: text is not a number, and a word "
            "that is not in the list of allowed ones means nothing."
        ),
        fix=(
            "Write a value of the kind the message names. `weft schema NAME` prints what every key "
            "takes."
        ),
        example='{"workflow_name": "Support", "initial_agent": "Router", "max_turns": "thirty"}',
    ),
    Rule(
        code="SCHEMA008",
        severity="error",
        title="Unknown key",
        why=(
            "A key that Weft does not know would be accepted and do nothing, and a misspelt one "
            "would leave the setting it was meant for at its default without a word."
        ),
        fix="Correct the spelling as suggested, or remove the key.",
        example='{"agents": [{"agent_name": "Router", "promt_sections": []}]}',
    ),
    Rule(
        code="SCHEMA009",
        severity="error",
        title="Key missing",
        why="The workflow cannot be built without this value, and there is no sensible default.",
        fix="Add the key the message names.",
        example='{"handoff_rules": [{"source_agent": "Router"}]}   target_agent is missing',
    ),
    Rule(
        code="SCHEMA010",
        severity="warning",
        title="Older spelling",
        why=(
            "Earlier systems wrote the same thing in other words. Weft reads them, but a package "
            "that mixes spellings is hard to read and to search."
        ),
        fix=(
            "Run `weft migrate`: it rewrites the folder to the present spelling and says what it "
            "changed."
        ),
        example='"source": {"type": "config", "env_var": "TIER", "default_value": "free"}',
    ),
    Rule(
        code="SCHEMA011",
        severity="error",
        title="Two files for the same thing",
        why=(
            "With agents.json and agents.yaml side by side nobody can tell which one counts, so "
            "neither is read."
        ),
        fix="Keep one of them.",
        example="agents.json and agents.yaml in one package folder",
    ),
    Rule(
        code="SCHEMA012",
        severity="error",
        title="Required file missing",
        why="A package without orchestrator or agents is no workflow.",
        fix="Add the file. `weft new NAME --pattern N` makes a complete package to start from.",
        example="a folder with agents.json but without orchestrator.json",
    ),
    Rule(
        code="SCHEMA013",
        severity="error",
        title="File that is not read",
        why=(
            "The file looks like one of a package, but its name is not, so whatever it declares "
            "has no effect."
        ),
        fix="Rename the file as suggested, or move it elsewhere.",
        example="agent.json next to orchestrator.json",
    ),
    Rule(
        code="SCHEMA015",
        severity="error",
        title="Archive cannot be made or imported",
        why=(
            "An archive comes from somewhere else and may be damaged, changed on the way or made "
            "to do harm. Weft takes it only if every file in it is listed in its manifest with "
            "the right sha256, has a name that means the same on every system and stays inside "
            "the package, and if the whole is at most 64 MiB and 2,000 files. Otherwise nothing "
            "is written at all."
        ),
        fix=(
            "Get the file again, or make it anew with `weft export NAME`. Do not change or repack "
            "an archive by hand: change the package and export it. If export refuses a name, "
            "rename the file."
        ),
        example="a zip file with an entry ../../start.py, or one without manifest.json",
    ),
)
