"""Family VAR: variables, where their values come from, what sets them and what reads them."""

from typing import Final

from weft.findings import Rule

RULES: Final[tuple[Rule, ...]] = (
    Rule(
        code="VAR001",
        severity="error",
        title="Database variable does not say clearly what is meant",
        why=(
            "A document is found by a field that equals the run's (search_by) or by a query "
            "(query_template). With neither, any document would do; with both, one of them is "
            "ignored. The same holds for field and fields."
        ),
        fix=(
            'Give exactly one of "search_by" and "query_template", and at most one of "field" and '
            '"fields".'
        ),
        example='"source": {"type": "database", "collection": "Users", "field": "name"}',
    ),
    Rule(
        code="VAR002",
        severity="error",
        title="Value does not fit the variable's type",
        why=(
            "Every value is checked before it is stored. This one would be refused: at the start "
            "of the run if it is a constant or default, or when the trigger fires."
        ),
        fix=(
            "Correct the value or the type. A trigger without a value sets true; for other types "
            'write the "value". For a value that may be missing, use optional[T].'
        ),
        example='"max_items": {"type": "int", "source": {"type": "static", "value": "25"}}',
    ),
    Rule(
        code="VAR003",
        severity="error",
        title="Computed variable depends on itself",
        why="Each of the variables waits for the next one, so none of them ever gets a value.",
        fix="Break the circle: compute one of the variables from something else.",
        example=(
            '"a": {"source": {"type": "computed", "computation": "b", "inputs": ["b"]}, ...}\n'
            '"b": {"source": {"type": "computed", "computation": "a", "inputs": ["a"]}, ...}'
        ),
    ),
    Rule(
        code="VAR004",
        severity="error",
        title="Computation cannot be carried out",
        why=(
            "A computed variable is a condition over its inputs, or the result of a function of "
            "the package. It is worked out anew when one of its inputs changes, so these must "
            "exist and be exactly those that are used. A function gets its inputs by name, and "
            "nothing else."
        ),
        fix=(
            "Correct the condition or the name of the function (module:function), and list the "
            "variables it uses under inputs."
        ),
        example=(
            '"source": {"type": "computed", "computation": "score > limit", "inputs": ["score"]}'
        ),
    ),
    Rule(
        code="VAR005",
        severity="error",
        title="Value or text looks like a secret",
        why=(
            "A package is copied, shared and stored with its history. A key or password in it is "
            "known to everyone who ever had the files, and one in a prompt to the model as well."
        ),
        fix=(
            'Take the value from an environment variable with "secret": true. Then make the old '
            "one invalid where it was issued: it may have been seen. If the text is no secret, "
            "give it a name that does not sound like one, or write an obvious placeholder."
        ),
        example='"api_key": {"source": {"type": "static", "value": "9f2c81d07be4"}, ...}',
    ),
    Rule(
        code="VAR006",
        severity="error",
        title="Name of a variable is reserved",
        why=(
            "The name already means something else: a variable that every run has, a word of the "
            "condition language or of Python, or a name that Weft keeps for itself. Which of the "
            "two is meant could not be told."
        ),
        fix="Choose another name.",
        example='"user_id": {"type": "str", "source": {"type": "static", "value": "u1"}}',
    ),
    Rule(
        code="VAR007",
        severity="error",
        title="Trigger waits for an agent in vain",
        why=(
            "Nobody of this name ever has a turn; or the event is before_chat or after_chat, which "
            "belongs to the run and to no agent. In both cases the trigger never fires."
        ),
        fix=(
            "Name the agent exactly as agents.json spells it. For before_chat and after_chat leave "
            "the agent out."
        ),
        example='{"type": "agent_text", "agent": "Interviewer", "match": {"equals": "NEXT"}}',
    ),
    Rule(
        code="VAR008",
        severity="error",
        title="Trigger waits for a tool that cannot fire it",
        why=(
            "The tool does not exist, or the trigger waits for a person's answer to a tool that "
            "asks nobody. In both cases it never fires."
        ),
        fix=(
            "Name the function of a tool in tools.json, or a tool of a server as the name of the "
            'server, _ and its own. "ui_response" needs a UI_Tool; for the result of any other '
            'tool use "tool_response".'
        ),
        example='{"type": "ui_response", "tool": "action_pln", "response_key": "accepted"}',
    ),
    Rule(
        code="VAR009",
        severity="error",
        title="Regular expression cannot be used",
        why=(
            "It does not compile, is longer than 1000 characters, or needs more than one pass over "
            "a text: looking ahead or behind and referring back do. It is applied to everything "
            "that is said, so it must not take longer than the text is long."
        ),
        fix=(
            'Correct the pattern at the column named in the finding, or use "contains" or "equals".'
        ),
        example='"match": {"regex": "(?=.*done)"}',
    ),
    Rule(
        code="VAR010",
        severity="warning",
        title="Nothing tells the agent to say the text that a trigger waits for",
        why=(
            "The trigger fires when the agent says this. Its prompt does not contain the text as "
            "a word or words of its own (for exact: in the same upper and lower case), so the "
            "agent will say it by accident or never."
        ),
        fix="Write into the agent's prompt when it should say the text, in the same words.",
        example=(
            '{"type": "agent_text", "agent": "InterviewAgent", "match": {"equals": "NEXT"}}\n'
            '"content": "Ask about the project until you know enough."'
        ),
    ),
    Rule(
        code="VAR011",
        severity="warning",
        title="Nothing ever sets the variable",
        why=(
            "A derived variable changes by its triggers, by its writers or by tool code. This one "
            "has none of them, so it keeps its default, and every rule on it is decided from the "
            "start."
        ),
        fix=(
            "Add a trigger, name the agents or tools that set it under writers, or make it static "
            "if it is a constant."
        ),
        example='"approved": {"type": "bool", "source": {"type": "derived", "default": false}}',
    ),
    Rule(
        code="VAR012",
        severity="warning",
        title="Nothing reads the variable",
        why=(
            "No agent is shown it, and no condition, computation, query or code asks for it. It "
            "is loaded in every run for nothing."
        ),
        fix="Remove the variable, or list it for the agent that needs it.",
        example='"old_flag": {"type": "bool", "source": {"type": "static", "value": true}}',
    ),
    Rule(
        code="VAR013",
        severity="error",
        title="Writers on a variable that cannot be written",
        why=(
            "Constants, environment, database, service and file variables are only read, and "
            "computed ones follow their inputs. An agent or tool named as writer would be refused."
        ),
        fix=(
            'Remove "writers". If the run should set the value, use a derived source, or an '
            "entity source if it is to be stored."
        ),
        example='"plan": {"source": {"type": "static", ...}, "writers": ["set_plan"], ...}',
    ),
    Rule(
        code="VAR014",
        severity="error",
        title="Trigger has a value that is never used",
        why=(
            "The trigger takes the value from somewhere else: an argument, the tool's result, or "
            "the state its transition leads to. The value written beside it has no effect."
        ),
        fix='Remove "value", or remove the other one.',
        example='{"type": "tool_call", "tool": "rate", "argument": "stars", "value": 5}',
    ),
    Rule(
        code="VAR015",
        severity="error",
        title="Trigger takes an argument that the tool does not have",
        why="The tool is never called with such an argument, so the variable is never set.",
        fix="Name a parameter of the tool's function.",
        example=(
            '{"type": "tool_call", "tool": "rate", "argument": "star"}\n'
            "async def rate(stars: int) -> str: ..."
        ),
    ),
    Rule(
        code="VAR016",
        severity="error",
        title="Function of a trigger cannot be asked",
        why=(
            "The function is asked after every turn what the variable is. If it is not there the "
            "workflow cannot start; if it requires what it is not given, it fails each time."
        ),
        fix=(
            "Correct the name, or write the function. `tools.rules:is_urgent` means the function "
            "is_urgent in tools/rules.py. It takes by name any variable, or values, agent, "
            "message, messages and content."
        ),
        example='{"type": "function", "function": "tools.rules:is_urgnt"}',
    ),
    Rule(
        code="VAR017",
        severity="error",
        title="Computed value is to be kept where nothing is stored",
        why="Only the document of an entity variable can be written, so the value would be lost.",
        fix='Name a variable whose source is entity under "persist_to", or remove it.',
        example='"source": {"type": "computed", ..., "persist_to": "max_items"}',
    ),
    Rule(
        code="VAR018",
        severity="error",
        title="File that a variable may not read",
        why=(
            "A variable can be shown to a model. It therefore reads only files inside the package "
            "or workspace folder, and none that usually hold keys or passwords."
        ),
        fix=(
            "Put the file into the package folder and name it by a path with /, such as "
            "data/prices.json. For a secret use an environment variable."
        ),
        example='"source": {"type": "file", "path": "../.env"}',
    ),
    Rule(
        code="VAR019",
        severity="error",
        title="Entity is found by a field that it does not have",
        why="No document of this schema has the field, so no document would ever be found.",
        fix=(
            "Name a built-in variable (app_id, user_id, chat_id, workflow_name) under search_by, "
            "or a field of the schema that is the name of a variable as well: the document is "
            "found whose field equals it. Or add the field to the schema."
        ),
        example='"source": {"type": "entity", "search_by": "mail", "schema": {"email": ...}, ...}',
    ),
    Rule(
        code="VAR020",
        severity="error",
        title="Secret is kept in the open",
        why=(
            "The value of a static, derived or computed variable stands in the package or in the "
            "record of the run. A secret must be neither; it is named there and looked up outside."
        ),
        fix='Use an environment, external or file source, or remove "secret".',
        example='"crm_key": {"secret": true, "source": {"type": "static", "value": "..."}, ...}',
    ),
    Rule(
        code="VAR021",
        severity="error",
        title="Code sets a variable that it may not set so",
        why=(
            "Every write is checked when it is made, and this one is always refused: nobody "
            "declares the variable, its source cannot be written, neither the function nor its "
            "agent is among the writers, the value does not fit the type, or no transition leads "
            "to it. The tool then fails in the middle of its work."
        ),
        fix=(
            "Correct the name or the value in the code, or declare the variable with a derived or "
            "entity source and name the function under writers. Only writes through a parameter "
            "context_variables (in the declared function also context) are judged, and values "
            "only if they are written down."
        ),
        example='context_variables.set("order_fuond", True)',
    ),
)
