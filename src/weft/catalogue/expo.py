"""Family EXPO: which variables agents are shown, and how prompts put them in."""

from typing import Final

from weft.findings import Rule

RULES: Final[tuple[Rule, ...]] = (
    Rule(
        code="EXPO001",
        severity="error",
        title="Prompt puts in a variable that is not declared",
        why=(
            "There is no value to put in place of the name, so the agent would be given broken "
            "instructions."
        ),
        fix=(
            "Correct the name, or declare the variable in context_variables.json. If the braces "
            "are meant literally, double them: {{name}} gives the agent the text {name}. Braces "
            "around anything but a plain name, as in JSON, are literal anyway."
        ),
        example='"content": "Greet {customer_nam} first."    (declared: customer_name)',
    ),
    Rule(
        code="EXPO002",
        severity="error",
        title="Prompt puts in a variable that the agent is not shown",
        why=(
            "An agent sees only the variables listed for it. The list is the contract: whoever "
            "reads it must be able to tell what the agent knows."
        ),
        fix=(
            "Add the variable to the agent's list in context_variables.json (`weft check --fix` "
            "does it), or take it out of the prompt."
        ),
        example=(
            '"agents": {"RouterAgent": {"variables": []}}\n'
            '"content": "The customer has the plan {plan}."'
        ),
    ),
    Rule(
        code="EXPO003",
        severity="error",
        title="Agent is shown a variable that is not declared",
        why="There is no such value, so the agent would miss something that you meant it to know.",
        fix="Correct the name, declare the variable, or remove it from the list.",
        example='"agents": {"RouterAgent": {"variables": ["curent_domain"]}}',
    ),
    Rule(
        code="EXPO004",
        severity="warning",
        title="Agent is shown a variable that it does not use",
        why=(
            "Every variable shown costs tokens in every turn and draws the model's attention. "
            "Neither the agent's prompt nor its handoff rules nor its tools mention this one, and "
            "it has no description, which would be shown with it."
        ),
        fix=(
            "Say what the variable is for, in its description or in the prompt, or remove it from "
            "the agent's list."
        ),
        example='"agents": {"GreeterAgent": {"variables": ["invoice_total"]}}',
    ),
    Rule(
        code="EXPO005",
        severity="warning",
        title="Prompt speaks of a variable that the agent is not shown",
        why=(
            "The prompt names the variable, but the agent cannot see its value. Models tend to "
            "make one up."
        ),
        fix=(
            "Add the variable to the agent's list, and put its value in with {name} where it is "
            "needed. If the agent need not know it, leave the name out of the prompt."
        ),
        example='"content": "Answer according to customer_tier."    (customer_tier is not listed)',
    ),
    Rule(
        code="EXPO006",
        severity="warning",
        title="Almost a variable in braces",
        why=(
            "Only {name} is replaced by a value. With blanks or a path inside the braces the text "
            "stays as it is; with a $ or a second brace before them, that sign stays in the text."
        ),
        fix=(
            "Write {name} to put the value in, or {{name}} for the literal text. For a part of a "
            "value, declare a variable of its own."
        ),
        example='"content": "Plan: { plan }, name: ${customer_name}, city: {address.city}"',
    ),
    Rule(
        code="EXPO007",
        severity="error",
        title="Agent is shown a variable that it may not read",
        why=(
            "The variable names its readers, and this agent is not one of them. One of the two "
            "declarations is wrong; showing the value would break the other."
        ),
        fix="Add the agent to the variable's readers, or remove the variable from its list.",
        example=(
            '"salary": {"readers": ["PayrollAgent"], ...}\n'
            '"agents": {"GreeterAgent": {"variables": ["salary"]}}'
        ),
    ),
    Rule(
        code="EXPO008",
        severity="error",
        title="Agent is shown a secret",
        why=(
            "What a model sees it can repeat, to users, to tools and into records. The value of a "
            "secret variable, and what is computed from it, is therefore used by adapters and "
            "tools only."
        ),
        fix=(
            "Remove the variable from the agent's list and prompt, and let a tool do what needs "
            'the secret. If the value is no secret, remove "secret".'
        ),
        example=(
            '"crm_key": {"secret": true, ...}\n'
            '"agents": {"RouterAgent": {"variables": ["crm_key"]}}'
        ),
    ),
    Rule(
        code="EXPO009",
        severity="error",
        title="Variable stands twice in an agent's list",
        why="The agent would be shown the same value twice.",
        fix="Remove one of the two entries; `weft check --fix` does it.",
        example='"agents": {"RouterAgent": {"variables": ["plan", "plan"]}}',
    ),
    Rule(
        code="EXPO010",
        severity="error",
        title="Agent's context names a variable that the agent is not shown",
        why=(
            "An agent sees only the variables listed for it in context_variables.json. The list is "
            "the contract; an agent's context may choose from it, not add to it."
        ),
        fix=(
            "Add the variable to the agent's list, correct the name, or take it out of the "
            "context. Without names, all variables of the list are sent."
        ),
        example=(
            '"context": [{"kind": "variables", "names": ["plan"]}]\n'
            '"agents": {"RouterAgent": {"variables": []}}'
        ),
    ),
    Rule(
        code="EXPO011",
        severity="error",
        title="Fixed text is longer than its own budget",
        why=(
            "A fixed text is never cut: half an instruction may say the opposite of the whole. So "
            "it must fit the max_tokens it declares. Four characters count as one token."
        ),
        fix="Shorten the text, or raise max_tokens, or remove it.",
        example='{"kind": "literal", "text": "Answer in one sentence.", "max_tokens": 2}',
    ),
    Rule(
        code="EXPO012",
        severity="error",
        title="Agent's context holds the same thing twice",
        why=(
            "The agent would be sent the conversation, or a variable, twice with every call: it "
            "costs tokens and makes models repeat themselves."
        ),
        fix="Keep one of the two.",
        example='"context": [{"kind": "history"}, {"kind": "history", "max_messages": 5}]',
    ),
    Rule(
        code="EXPO013",
        severity="warning",
        title="Agent is shown what is named like a secret",
        why=(
            "The environment variable has a word such as KEY, TOKEN, SECRET or PASSWORD in its "
            "name. What a model sees it can repeat, and the value is kept in the record of the "
            "run, where everybody who may read that finds it."
        ),
        fix=(
            'Set "secret" to true, take the variable out of the agent\'s list and prompt, and let '
            "a tool do what needs it. If the value is no secret, give the environment variable "
            "another name."
        ),
        example=(
            '"crm_key": {"source": {"type": "environment", "env_var": "CRM_KEY"}, ...}\n'
            '"agents": {"RouterAgent": {"variables": ["crm_key"]}}'
        ),
    ),
)
