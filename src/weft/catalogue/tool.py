"""Family TOOL: every declared tool has code, and the code can be called as declared."""

from typing import Final

from weft.findings import Rule

RULES: Final[tuple[Rule, ...]] = (
    Rule(
        code="TOOL001",
        severity="error",
        title="Code file of a tool is missing",
        why="The tool is offered to a model, but the first call would find no code to run.",
        fix=(
            "Write the file under tools/, or correct `file`. The path is given from tools/ on: "
            "lookup.py stands for tools/lookup.py."
        ),
        example='{"agent": "Clerk", "file": "lookup.py", "function": "find"}    (no such file)',
    ),
    Rule(
        code="TOOL002",
        severity="error",
        title="Function of a tool is missing in its file",
        why=("The file is there, but has no such function: the package cannot be loaded."),
        fix=(
            "Define the function at the top level of the file, import it there, or correct "
            "`function` to the name it has in the code."
        ),
        example='{"file": "lookup.py", "function": "find_order"}    (the code has get_order)',
    ),
    Rule(
        code="TOOL003",
        severity="error",
        title="Python file does not parse",
        why=(
            "No function of the file can be used, and none of its tools and hooks can be checked, "
            "until Python can read it."
        ),
        fix="Go to the line and column named in the finding and correct the code there.",
        example="def find(order_id: str:\n    ...",
    ),
    Rule(
        code="TOOL004",
        severity="warning",
        title="Parameter of a tool that a model is not told about rightly",
        why=(
            "What a model is told about a tool's arguments is made from the type hints. Without "
            "one the model guesses, and whatever it sends is passed on unchecked. With a hint that "
            "names what the file does not have the package cannot be loaded: that is an error."
        ),
        fix=(
            "Write the type after the parameter: order_id: str. Parameters named context_variables "
            "or context are filled by the run and need none. Import what a hint names."
        ),
        example="async def find(order_id, limit: int = 5): ...",
    ),
    Rule(
        code="TOOL005",
        severity="error",
        title="Lifecycle tool requires what it is not given",
        why=(
            "Lifecycle tools are called by the run, before or after a chat or a turn, and are "
            "given by name whatever they take of a fixed list. With a parameter of another name "
            "the call would fail each time."
        ),
        fix=(
            "Take context_variables and read what you need from there, or messages, message, "
            "content, agent, sender, recipient and silent. Give every other parameter a default "
            "value."
        ),
        example="def load_profile(user_email: str): ...    (trigger: before_chat)",
    ),
    Rule(
        code="TOOL006",
        severity="warning",
        title="Description of a tool is missing or too long",
        why=(
            "A model chooses among its tools by their descriptions, and reads all of them before "
            "every reply. Where none is given it is sent the first line of the docstring; without "
            "that it guesses. More than 140 characters cost tokens each time."
        ),
        fix=(
            "Say in one sentence what the tool does and when to call it, as its description or in "
            "the first line of its docstring."
        ),
        example='{"function": "find_order", "description": ""}',
    ),
    Rule(
        code="TOOL007",
        severity="warning",
        title="File under tools/ that nothing uses",
        why=(
            "No tool is declared in the file, no other setting names it and no other file imports "
            "it. It is either forgotten code or a tool whose declaration was forgotten."
        ),
        fix="Declare its function in tools.json, import it where it is needed, or delete it.",
        example="tools/old_lookup.py, named nowhere",
    ),
    Rule(
        code="TOOL008",
        severity="error",
        title="Automatic tool needs what the output does not have",
        why=(
            "A tool with auto_invoke is called with the fields of its agent's structured output "
            "that it names, or with all if it takes **kwargs. A required parameter without a field "
            "of that name makes every such call fail."
        ),
        fix=(
            "Name the parameters like the fields of the bound model, add the missing field, or "
            "give the parameter a default value."
        ),
        example=(
            "def save_ticket(ticket_title: str): ...\n"
            "bound model: TicketSummary with the fields title and body"
        ),
    ),
    Rule(
        code="TOOL009",
        severity="error",
        title="Automatic tool call is not complete",
        why=(
            "An output calls a tool by itself only if three things come together: the agent has "
            "auto_tool_mode, one of its tools has auto_invoke, and a model is bound to the agent. "
            "If one is missing, nothing is ever called, and nobody is told."
        ),
        fix="Add what the finding names, or take the setting back that asks for it.",
        example='{"agent_name": "Clerk", "auto_tool_mode": true}    (no tool has auto_invoke)',
    ),
    Rule(
        code="TOOL010",
        severity="warning",
        title="UI tool that asks nobody",
        why=(
            "A UI tool shows a component and waits for a person's answer by calling use_ui_tool. "
            "Neither its function nor the code it uses does that, so nothing will ever be shown."
        ),
        fix=(
            "Call use_ui_tool and wait for its result, or declare the function as an Agent_Tool "
            "if no person is involved."
        ),
        example='{"tool_type": "UI_Tool", "file": "approve.py", "function": "approve_plan"}',
    ),
    Rule(
        code="TOOL011",
        severity="error",
        title="Tool file outside of tools/",
        why=(
            "The code of a package stays inside its folder, so that a package can be moved, "
            "exported and reviewed as a whole. Absolute paths, .., backslashes and files that are "
            "not Python are refused."
        ),
        fix="Put the code into a .py file under tools/ and write its path from there on.",
        example='{"file": "../shared/lookup.py", "function": "find"}',
    ),
    Rule(
        code="TOOL012",
        severity="error",
        title="More than one automatic tool for an agent",
        why=(
            "One output makes one call. With two tools that ask for it, it is not decided which "
            "one runs, nor in which order."
        ),
        fix="Keep auto_invoke on one tool; if both must run, let that one call the other.",
        example=(
            '[{"agent": "Clerk", "function": "save", "auto_invoke": true},\n'
            ' {"agent": "Clerk", "function": "notify", "auto_invoke": true}]'
        ),
    ),
    Rule(
        code="TOOL013",
        severity="error",
        title="Tool server cannot be reached as it is declared",
        why=(
            "A server is either a program that Weft starts (command, with its env), or one that "
            "runs already (url, with auth). With neither there is nothing to reach; with both, or "
            "with what belongs to the other kind, something that is written has no effect. A "
            "secret is named by its environment variable, never written down."
        ),
        fix=(
            'Write "command" as a list of the program and its arguments, or "url" as a whole '
            'address. Give secrets as {"secret_env": "NAME"}: in "env" to a program, in "auth" to '
            "a server."
        ),
        example='"mcp_servers": [{"name": "files", "agents": ["Clerk"]}]',
    ),
    Rule(
        code="TOOL014",
        severity="warning",
        title="Tool server is spoken to without encryption",
        why=(
            "The url begins with http:// and leads to another machine. Whoever is on the way reads "
            "what agents send and get, the secret by which the server knows us included, and can "
            "change it."
        ),
        fix="Write https://, or let the server run on this machine: localhost or 127.0.0.1.",
        example='"mcp_servers": [{"name": "crm", "url": "http://crm.example/mcp"}]',
    ),
)
