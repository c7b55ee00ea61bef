"""Family UI: what is shown to people, and what becomes of their answers."""

from typing import Final

from weft.findings import Rule

RULES: Final[tuple[Rule, ...]] = (
    Rule(
        code="UI001",
        severity="error",
        title="UI tool with nothing to show",
        why=(
            "A person must be able to answer. That takes either a component, "
            "tools/<component>.jsx, or a response_schema from which a form is made. With neither, "
            "the run would wait for an answer that cannot be given. It is a warning where a form "
            "can be made, but a component file of a similar name is there that no tool shows."
        ),
        fix="Add a response_schema, write the component, or correct its name.",
        example=(
            '{"tool_type": "UI_Tool", "function": "approve_plan",\n'
            ' "ui": {"component": "ApprovalCard", "mode": "inline"}}    (no ApprovalCard.jsx)'
        ),
    ),
    Rule(
        code="UI002",
        severity="error",
        title="Answer has no such key",
        why=(
            "The trigger takes the variable's value from this part of the answer. The "
            "response_schema allows no such part, so the variable would never be set."
        ),
        fix=(
            "Correct response_key, or add the property to the response_schema. Keys inside of "
            "objects are joined by dots: plan.accepted."
        ),
        example=(
            '{"type": "ui_response", "tool": "approve_plan", "response_key": "acepted"}\n'
            'response_schema: {"type": "object", "properties": {"accepted": {"type": "boolean"}}}'
        ),
    ),
    Rule(
        code="UI003",
        severity="error",
        title="Schema of a UI tool is not a JSON Schema",
        why=(
            "The form is made from the schema and the answer is checked against it. What is not a "
            "JSON Schema can serve for neither, and the card could not be shown."
        ),
        fix=(
            "Use the types string, integer, number, boolean, array, object and null. `properties` "
            "is an object, `enum` a list, and `required` a list of names that stand in "
            "`properties`."
        ),
        example='{"type": "object", "properties": {"amount": {"type": "int"}}}',
    ),
    Rule(
        code="UI004",
        severity="warning",
        title="Component name is not PascalCase",
        why=(
            "JSX takes a tag that begins with a small letter for an ordinary HTML element, so a "
            "component named that way is never drawn where another one uses it."
        ),
        fix="Write the words together, each with a capital, and name the file the same.",
        example='{"ui": {"component": "approvalCard", "mode": "inline"}}',
    ),
    Rule(
        code="UI005",
        severity="error",
        title="Component file without exactly one default export",
        why=(
            "What is shown is the default export of the file. Without one there is nothing to "
            "show, and with two the file cannot be compiled."
        ),
        fix="Write export default before the component that is to be shown, and only there.",
        example="function ApprovalCard(props) { ... }    (nothing is exported)",
    ),
    Rule(
        code="UI006",
        severity="error",
        title="Variable does not take every answer",
        why=(
            "The response_schema lets a person give an answer that does not fit the variable's "
            "type. The person did nothing wrong, yet the answer would be refused."
        ),
        fix=(
            "Give both the same values: list them in the schema under enum and in the type as "
            "literal[...], or widen the type of the variable."
        ),
        example=(
            '"decision": {"type": "literal[\\"yes\\", \\"no\\"]", "source": ...}\n'
            'response_schema: {"properties": {"decision": {"enum": ["yes", "no", "later"]}}}'
        ),
    ),
    Rule(
        code="UI007",
        severity="error",
        title="Code shows a UI tool that is not declared",
        why=(
            "use_ui_tool names the UI tool whose component is shown and whose schemas say what may "
            "be shown and answered. No UI tool of tools.json has this name, so the call would fail "
            "before anybody is asked."
        ),
        fix=(
            "Write the function name of a UI_Tool of this package, or declare one. A tool that "
            "asks for itself names its own function."
        ),
        example=(
            'await use_ui_tool("aprove_plan", {"plan": plan})\n'
            '{"tool_type": "UI_Tool", "file": "approve.py", "function": "approve_plan"}'
        ),
    ),
    Rule(
        code="UI008",
        severity="warning",
        title="Agent that works by approval cannot ask for it",
        why=(
            "human_interaction says how many replies in a row an agent may give; it asks nobody. A "
            "person approves something by answering a UI tool, and this agent has none, so it goes "
            "on without anybody's approval."
        ),
        fix=(
            "Give the agent a UI_Tool that asks, or say in human_interaction how it works with "
            "people instead."
        ),
        example='{"agent_name": "RefundAgent", "human_interaction": "approval"}    (no UI_Tool)',
    ),
    Rule(
        code="UI009",
        severity="error",
        title="Addressee puts in a variable that is not declared",
        why=(
            "Nobody could tell who is to be asked: a UI tool would fail when it asks, and so would "
            "a tool of a server that a person must approve."
        ),
        fix=(
            "Correct the name, or declare the variable. Built-in ones are user_id, app_id, chat_id "
            "and workflow_name."
        ),
        example='{"tool_type": "UI_Tool", "function": "approve_plan", "for": "user:{manger}"}',
    ),
    Rule(
        code="UI010",
        severity="error",
        title="Variable is to be set from a secret field",
        why=(
            "What a person types into a field with writeOnly or the format password is never "
            "stored: only the tool that asked gets it. A variable is stored, and shown to agents."
        ),
        fix=(
            "Let the tool use the secret while it is called, and set the variable from another "
            'part of the answer. If the field is no secret, remove "writeOnly" or "format".'
        ),
        example=(
            '{"type": "ui_response", "tool": "sign_in", "response_key": "pin"}\n'
            'response_schema: {"properties": {"pin": {"type": "string", "format": "password"}}}'
        ),
    ),
    Rule(
        code="UI011",
        severity="error",
        title="Answer is not awaited",
        why=(
            "use_ui_tool is asynchronous. Without `await` the person is never asked, and the tool "
            "returns a coroutine instead of the answer."
        ),
        fix="Write `await use_ui_tool(...)`, and declare the function with `async def`.",
        example='return use_ui_tool("approve_plan", {"plan": plan})',
    ),
)
