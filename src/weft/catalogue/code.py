"""Families HOOK and LINK: every function that is to be called is there and can be loaded."""

from typing import Final

from weft.findings import Rule

HOOK: Final[tuple[Rule, ...]] = (
    Rule(
        code="HOOK001",
        severity="error",
        title="Code file of a hook is missing",
        why="The moment the hook is for would come, and there would be no code to run.",
        fix=(
            "Write the file under hooks/, or correct `file`. The path is given from hooks/ on: "
            "audit.py stands for hooks/audit.py."
        ),
        example='{"hook_type": "after_chat", "file": "audit.py", "function": "record"}',
    ),
    Rule(
        code="HOOK002",
        severity="error",
        title="Function of a hook is missing in its file",
        why="The file is there, but the call at the hook's moment would find no such function.",
        fix=(
            "Define the function at the top level of the file, import it there, or correct "
            "`function` to the name it has in the code."
        ),
        example='{"file": "audit.py", "function": "record_chat"}    (the code has record)',
    ),
    Rule(
        code="HOOK003",
        severity="error",
        title="Hook requires what it is not given",
        why=(
            "A hook is given by name whatever it takes of a fixed list. A parameter of another "
            "name has no value, so the hook fails every time its moment comes."
        ),
        fix=(
            "Use any of context_variables, messages, message, content, agent, sender, recipient "
            "and silent. At the moments of the run, before_chat, after_chat, on_start, on_complete "
            "and on_fail, the agent is None. Give every other parameter a default value."
        ),
        example="def mask(text): ...    (hook_type: process_last_received_message)",
    ),
    Rule(
        code="HOOK004",
        severity="warning",
        title="File under hooks/ that nothing uses",
        why=(
            "No hook is declared in the file and no other file imports it, so it never runs. It "
            "is either forgotten code or a hook whose declaration was forgotten."
        ),
        fix="Declare its function in hooks.json, import it where it is needed, or delete it.",
        example="hooks/old_audit.py, named nowhere",
    ),
    Rule(
        code="HOOK005",
        severity="error",
        title="Hook file outside of hooks/",
        why=(
            "The code of a package stays inside its folder, so that a package can be moved, "
            "exported and reviewed as a whole. Absolute paths, .., backslashes and files that are "
            "not Python are refused."
        ),
        fix="Put the code into a .py file under hooks/ and write its path from there on.",
        example='{"hook_type": "after_chat", "file": "/srv/audit.py", "function": "record"}',
    ),
)

LINK: Final[tuple[Rule, ...]] = (
    Rule(
        code="LINK001",
        severity="error",
        title="Code of the package cannot be imported",
        why=(
            "A file raises an error while it is loaded, or needs a library that is not installed. "
            "Checking does not run code, so this is found when a run is to begin."
        ),
        fix="Install what is missing where Weft runs, or correct the line that the finding names.",
        example="import some_library        which is not installed",
    ),
    Rule(
        code="LINK002",
        severity="error",
        title="A model cannot be told how to call a tool",
        why=(
            "The description of a tool is made from the types of its parameters. A type that JSON "
            "cannot express has no description, so no model could give a value for it."
        ),
        fix=(
            "Use str, int, float, bool, list, dict, Literal, Enum, TypedDict, dataclasses or "
            "pydantic models for the parameters, and `context_variables` for the variables."
        ),
        example="def send(message: Connection) -> str: ...",
    ),
    Rule(
        code="LINK003",
        severity="error",
        title="Something is declared that is not performed here",
        why=(
            "A run that passed it over would not be the workflow that was written: a budget would "
            "limit nothing, and nobody would know. So it does not begin."
        ),
        fix=(
            "Take the declaration out, or use a version of Weft that performs it. Instead of a "
            "flow, let handoffs decide who is next. A trigger of the type x:NAME needs "
            "the plug-in that adds it: install that where Weft runs."
        ),
        example='"budgets": [{"level": "run", "tokens": 100000}]',
    ),
    Rule(
        code="LINK004",
        severity="error",
        title="An object in code cannot be found here",
        why=(
            "A flow or a board names functions and classes as module:name, in the package or "
            "installed, or as local:NAME where a program defines them. Here there is no such "
            "module or name, so the workflow runs only where there is. Its runs can be looked at "
            "everywhere: weft runs show, weft inspect and weft replay call no code."
        ),
        fix=(
            "Install the module where Weft runs, correct the name, or move the code into a file of "
            "the package. A module next to a script is found with PYTHONPATH=FOLDER weft ... What "
            "a program defines runs in that program alone: open the same journal there with "
            "open_flow(flow, journal=FILE) and call host.recover() or host.deliver(...)."
        ),
        example='"function": "newsroom.checks:check_facts"    (newsroom is not installed here)',
    ),
)
