"""Names, conditions and code references, wherever they are written."""

from typing import Final

ENTRIES: Final = r"""
NAME001 error: Unknown name
  why: A declaration refers to something that does not exist: an agent, tool, model, variable,
    artifact type, field or model provider. It would have no effect, or the run would stop when it
    is used. An unknown label is a warning.
  fix: Correct the name as the hint suggests, or declare what is missing. Names are compared
    letter by letter.
  example: {"source_agent": "RouterAgent", "target_agent": "TechSpecalist"}

NAME002 error: Duplicate name
  why: Two items of a list have the same name, so it is not clear which one a reference means, and
    one of the two would be ignored. A duplicate prompt section id or transition is a warning.
  fix: Rename or remove one of the two. `weft check --fix` removes the second if both are equal.
  example: [{"agent_name": "RouterAgent"}, {"agent_name": "RouterAgent"}]

NAME003 warning: Unused declaration
  why: Nothing uses what is declared here, so it has no effect: a variable that nothing reads, a
    model that no type contains, a file that nothing imports, an agent without a step. It may be
    left over, or its use may be missing. An agent of agents.json that is not on the board is an
    error.
  fix: Use it where it is needed, or remove it.
  example: tools/old_lookup.py, which neither tools.json nor another file names

NAME004 warning: Name in the wrong case
  why: Agents, models, components and groups are written in PascalCase; functions, variables and
    fields in snake_case. Readers and models distinguish them by that, and JSX treats a lower-case
    tag as an HTML element. For a group it is an error.
  fix: Rename it as the hint suggests, everywhere it is used. On a board, agents may also be
    snake_case.
  example: {"agent_name": "billing_agent"}

NAME005 warning: Workflow and folder have different names
  why: Commands and packs use workflow_name, people look for the folder. Two names for one
    workflow make it hard to find.
  fix: Set workflow_name to the name of the folder, or rename the folder.
  example: workflows/HelloWorld/orchestrator.json: {"workflow_name": "Hello"}

NAME006 error: Reserved name
  why: The name already means something else: a fixed handoff target, a built-in variable, a
    keyword, an agent with the same name as a group, or the artifact type of schedules. Names of
    tool servers are limited to letters, digits, _ and -.
  fix: Choose another name.
  example: "user_id": {"type": "str", "source": {"type": "static", "value": "u1"}}

COND001 error: Invalid condition
  why: The condition cannot be parsed, so it has no answer. The workflow does not start.
  fix: Go to the column of the finding. A condition compares variables with values (== != < <= >
    >= in), joined by and, or, not and parentheses; texts are in quotes. "When x is true AND y is
    true" is allowed as well. For a condition in words set "condition_type" to "llm" or "nearest".
  example: {"condition": "current_domain = 'tech'"}    (write ==)

COND002 error: Unknown variable in a condition
  why: The condition tests a variable, a field or an artifact type that does not exist, so it has
    no answer.
  fix: Correct the name, or declare the variable or field. Put a text in quotes: in x == tech,
    tech is a variable; in x == 'tech' it is a text.
  example: {"condition": "interview_completed == true"}    (declared: interview_complete)

COND003 error: Impossible comparison
  why: The type or the transitions of the variable rule the value out, so the comparison always
    has the same answer; or the values have no order.
  fix: Correct the value: its spelling, or quotes around a number, true or false. If the value is
    right, add it to the type or to the transitions.
  example: "current_domain": {"type": "literal[\"tech\", \"finance\"]", ...}
    {"condition": "current_domain == 'technical'"}

COND004 error: Variable must not decide handoffs
  why: By default only environment and derived variables decide handoffs, because their changes
    are recorded. Built-in variables only identify the run, and a run never has the value of a
    secret.
  fix: Set "routing": true on the variable if its value should decide handoffs. Otherwise let a
    trigger set a derived variable and test that.
  example: "plan": {"type": "str", "source": {"type": "database", ...}}
    {"condition": "plan == 'gold'"}

COND005 error: Condition violates the strict profile
  why: With "condition_profile": "strict" a condition is a positive test of environment or derived
    variables, joined by at most one `and`.
  fix: Split the condition into several handoffs, or set "condition_profile": "full" in
    orchestrator.json.
  example: {"condition": "not interview_complete or urgent"}

COND006 error: Condition cannot be judged
  why: A condition of the type llm needs "llm_conditions": true, because a model call may give
    another answer next time.
  fix: Write the condition as an expression, or set "llm_conditions": true in orchestrator.json.
  example: {"condition": "the user sounds angry", "condition_type": "llm"}

CODE001 error: Missing code file
  why: The tool or hook is declared in a file that does not exist, so there is no code to call.
  fix: Create the file, or correct `file`. The path is relative to tools/ or hooks/: lookup.py
    means tools/lookup.py.
  example: {"agent": "Clerk", "file": "lookup.py", "function": "find"}    (no such file)

CODE002 error: Missing function
  why: The file or module does not define the function or class that is named. A module that is
    not installed here is a warning: it may be installed where the package runs.
  fix: Define the function at the top level of the file, import it there, or correct the name.
    `tools.rules:is_urgent` means the function is_urgent in tools/rules.py.
  example: {"file": "lookup.py", "function": "find_order"}    (the code has get_order)

CODE003 error: Invalid Python file
  why: Python cannot compile the file, so none of its functions can be used or checked.
  fix: Correct the code at the line and column of the finding.
  example: def find(order_id: str:
        ...

CODE004 error: Missing argument
  why: The function requires a parameter that it is not given, so every call fails. Hooks and
    lifecycle tools are given values by name from a fixed list, functions of triggers the
    variables, computations their inputs, and automatic tools the fields of the structured output.
  fix: Rename the parameter, give it a default value, or add the input or field.
  example: def mask(text): ...    (hook_type: process_last_received_message)

CODE005 error: Code file outside the package
  why: The code of a package stays in tools/ and hooks/, so that the package can be moved,
    exported and reviewed as a whole. Absolute paths, `..`, backslashes and files that are not
    Python are refused.
  fix: Put the code into a .py file under tools/ or hooks/ and write the path relative to that
    folder.
  example: {"file": "../shared/lookup.py", "function": "find"}

CODE006 error: Object of a program in a package
  why: local:NAME is an object of the program that defines a workflow in code. A package has no
    such program.
  fix: Move the code into a file of the package and refer to it as module:name.
  example: {"kind": "function", "function": "local:check_facts"}
"""
