"""Family NAME: names that are badly formed, taken, or given twice."""

from typing import Final

from weft.findings import Rule

RULES: Final[tuple[Rule, ...]] = (
    Rule(
        code="NAME001",
        severity="warning",
        title="Agent name is not PascalCase",
        why=(
            "Agents are told apart from tools and variables by their look, in prompts, diagrams "
            "and handoffs alike. A name with blanks or other marks also confuses models that "
            "address each other by name."
        ),
        fix=(
            "Write the words together, each with a capital: RouterAgent. Do so in every file. On a "
            "board, snake_case is as good: pep_talk_lead."
        ),
        example='{"agent_name": "billing_agent"}',
    ),
    Rule(
        code="NAME002",
        severity="warning",
        title="Name is not snake_case",
        why=(
            "Tools, variables and fields of models turn up in Python code, in conditions and in "
            "prompts. With one way of writing them nobody has to guess, neither people nor models."
        ),
        fix=(
            "Write the words in lower case with underscores between them: current_domain. Rename "
            "the function, variable or field wherever it is used."
        ),
        example='{"file": "lookup.py", "function": "lookupOrder"}',
    ),
    Rule(
        code="NAME003",
        severity="error",
        title="Two agents with one name",
        why=(
            "Handoffs, tools and triggers refer to agents by name. With two of the same name it "
            "is not decided which one gets the turn, and one of them would never take part."
        ),
        fix="Give one of the two another name, or remove it.",
        example='[{"agent_name": "RouterAgent"}, {"agent_name": "RouterAgent"}]',
    ),
    Rule(
        code="NAME004",
        severity="error",
        title="Tool declared twice",
        why=(
            "A model sees its tools by name, and triggers refer to them by name. The same tool "
            "twice for one agent is refused by most providers; one name for functions in two "
            "files leaves open which of them runs."
        ),
        fix="Remove the repetition, or give one of the two functions another name.",
        example=(
            '[{"agent": "Clerk", "file": "orders.py", "function": "find"},\n'
            ' {"agent": "Clerk", "file": "people.py", "function": "find"}]'
        ),
    ),
    Rule(
        code="NAME005",
        severity="warning",
        title="Workflow and folder have different names",
        why=(
            "Commands, packs and other workflows name a workflow by workflow_name, people look "
            "for its folder. Two names for one thing make it hard to find."
        ),
        fix="Write the name of the folder as workflow_name, or rename the folder.",
        example='workflows/HelloWorld/orchestrator.json: {"workflow_name": "Hello"}',
    ),
    Rule(
        code="NAME006",
        severity="warning",
        title="Two prompt sections with one id",
        why=(
            "Changes to a prompt, whether by an editor or by the Generator, name the section by "
            "its id. With two of the same id, the wrong one may be changed."
        ),
        fix="Give one of the sections another id, or put their texts together.",
        example='[{"id": "role", "content": "..."}, {"id": "role", "content": "..."}]',
    ),
    Rule(
        code="NAME007",
        severity="error",
        title="Two models with one name",
        why=(
            "Types and the registry refer to models by name. With two of the same name, one of "
            "the two would silently decide what an agent may reply."
        ),
        fix="Give one of the two another name, or remove it.",
        example="two entries of structured_outputs.json named TicketSummary",
    ),
    Rule(
        code="NAME008",
        severity="error",
        title="Agent is named like a fixed target",
        why=(
            "In a handoff, user means the person and terminate means the end of the run. An agent "
            "of that name could never be handed off to."
        ),
        fix="Give the agent another name, such as UserProxy or ClosingAgent.",
        example='{"agent_name": "User"}',
    ),
    Rule(
        code="NAME009",
        severity="warning",
        title="Model name is not PascalCase",
        why=(
            "A type can refer to a model only by a PascalCase name that is no word of the type "
            "language. A model called ticket or List can be bound to an agent, but never used "
            "inside another type."
        ),
        fix="Write the words together, each with a capital: TicketSummary.",
        example='{"name": "ticket_summary", "fields": {"title": {"type": "str"}}}',
    ),
    Rule(
        code="NAME010",
        severity="error",
        title="Name of a group is taken or not PascalCase",
        why=(
            "A handoff names a group as it names an agent. If both have one name, or two groups "
            "have, it is not clear which is meant."
        ),
        fix="Give the group a name of its own, written like that of an agent: ReviewTeam.",
        example='"parallel": [{"name": "user", "members": ["LegalAgent", "FinanceAgent"]}]',
    ),
    Rule(
        code="NAME011",
        severity="error",
        title="Name of a tool server is taken or cannot be used",
        why=(
            "Models know the tools of a server by its name and theirs: files_read_file. Of two "
            "servers with one name it is not clear which is meant, and models take only letters, "
            "digits, _ and - in the name of a tool, and not many of them."
        ),
        fix="Give each server a name of its own: a letter, then up to 30 letters, digits, _ and -.",
        example='"mcp_servers": [{"name": "my files", "command": ["files-server"]}]',
    ),
)
