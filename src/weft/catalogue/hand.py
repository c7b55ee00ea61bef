"""Family HAND: who hands off to whom, and when."""

from typing import Final

from weft.findings import Rule

RULES: Final[tuple[Rule, ...]] = (
    Rule(
        code="HAND001",
        severity="error",
        title="Handoff to someone who is no agent",
        why=(
            "When the rule applies, nobody would take the next turn and the run would stop in the "
            "middle of the conversation."
        ),
        fix=(
            "Name an agent exactly as agents.json spells it, or one of the two fixed targets: "
            '"user" waits for the person, "terminate" ends the run.'
        ),
        example='{"source_agent": "RouterAgent", "target_agent": "TechSpecalist"}',
    ),
    Rule(
        code="HAND002",
        severity="error",
        title="Handoff of someone who is no agent",
        why="Nobody of this name ever has a turn, so the rule is never asked and never applies.",
        fix="Name the agent whose turn the rule belongs to, exactly as agents.json spells it.",
        example='{"source_agent": "Router", "target_agent": "TechSpecialist"}',
    ),
    Rule(
        code="HAND003",
        severity="error",
        title="Condition cannot be read",
        why=(
            "A condition that cannot be read has no answer, so nobody could tell who is "
            "next. Weft does not guess: the workflow does not start."
        ),
        fix=(
            "Go to the column named in the finding. A condition compares variables with values "
            "(== != < <= > >= in), joined by and, or, not and parentheses. Texts stand in quotes. "
            'The English form "When x is true AND y is true" is read as well. For a condition in '
            'free words, which a model judges, set "condition_type": "llm"; for a description, of '
            'which the nearest to the user\'s message decides, "nearest".'
        ),
        example='{"condition": "current_domain = \'tech\'"}    (write ==)',
    ),
    Rule(
        code="HAND004",
        severity="error",
        title="Condition uses a variable that may not decide a handoff",
        why=(
            "By default only environment and derived variables decide who is next: they "
            "are small and their changes are on record. Stored documents, answers of services and "
            "constants describe the work; routing on them makes runs hard to foresee. Built-in "
            "variables only say whose run it is, and secrets have no value inside a run."
        ),
        fix=(
            'If the value is really meant to steer the conversation, set "routing": true on the '
            "variable. Otherwise let a trigger set a derived variable and test that."
        ),
        example=(
            '"plan": {"type": "str", "source": {"type": "database", ...}}\n'
            '{"condition": "plan == \'gold\'"}'
        ),
    ),
    Rule(
        code="HAND005",
        severity="error",
        title="Condition uses a variable that is not declared",
        why="The variable never has a value, so the condition has no answer.",
        fix=(
            "Correct the name, or declare the variable. If the word is meant as a text, put it in "
            "quotes: in x == tech, tech is a variable; in x == 'tech' it is a text."
        ),
        example='{"condition": "interview_completed == true"}    (declared: interview_complete)',
    ),
    Rule(
        code="HAND006",
        severity="error",
        title="Second fallback for one agent",
        why=(
            "A rule without a condition applies whenever no other rule does. Of two such rules "
            "only the first can ever apply; the other is dead, and nothing in a run shows it."
        ),
        fix="Give one of the two rules a condition, or remove it.",
        example=(
            '{"source_agent": "RouterAgent", "target_agent": "TechSpecialist"}\n'
            '{"source_agent": "RouterAgent", "target_agent": "user"}'
        ),
    ),
    Rule(
        code="HAND007",
        severity="warning",
        title="Two rules of the same priority may apply at once",
        why=(
            "When both conditions hold, the order in the file decides. Whoever sorts or rewrites "
            "the file then changes how the workflow behaves, without noticing."
        ),
        fix=(
            "Give the rules different priorities (the lower one comes first), or write conditions "
            "that exclude each other. Weft tries out all values that matter; two conditions that "
            "are not told apart by 4096 tries count as possibly overlapping."
        ),
        example=(
            '{"source_agent": "RouterAgent", "target_agent": "TechAgent", "condition": "urgent"}\n'
            '{"source_agent": "RouterAgent", "target_agent": "BillingAgent", "condition": "paid"}'
        ),
    ),
    Rule(
        code="HAND008",
        severity="error",
        title="No run ever comes to an agent",
        why=(
            "Whatever happens in a run, this agent never gets a turn, or always hands off before "
            "it can reply. Its prompt, its tools and its rules have no effect, and the work "
            "it was meant to do is left undone without anybody being told."
        ),
        fix=(
            "Add a handoff to the agent, or correct the condition of the one that should lead to "
            "it: the finding says why that one never applies. Remove the agent if it is no longer "
            "needed."
        ),
        example=(
            '{"source_agent": "RouterAgent", "target_agent": "TechSpecialist", '
            '"condition": "current_domain == \'tech\'"}    '
            "(nothing ever sets current_domain to tech)"
        ),
    ),
    Rule(
        code="HAND009",
        severity="warning",
        title="Rule that can never apply",
        why=(
            "In none of the states that a run can get to does this rule decide: its condition is "
            "never true at that moment, or a rule that is asked earlier always applies first. The "
            "conversation does not go the way its author wrote down."
        ),
        fix=(
            "Compare the condition with the values that the finding lists. If another rule comes "
            "first, narrow that one or give this one a lower priority number. Remove the rule if "
            "the case cannot happen."
        ),
        example=(
            '{"source_agent": "Reviewer", "target_agent": "user", "condition": "approved", '
            '"priority": 1} before {..., "target_agent": "Writer", '
            '"condition": "approved and urgent", "priority": 2}'
        ),
    ),
    Rule(
        code="HAND010",
        severity="error",
        title="Agent that hands off to itself for ever",
        why=(
            "A run can get to a state in which this agent hands off to itself again and "
            "again, and nothing that can still happen leads to the user or to the end. Such a run "
            "spends its turns and its budget until a limit cuts it off."
        ),
        fix=(
            "Follow the way that the finding describes. Add a rule of this agent that leads to "
            '"user" or "terminate" in that state, or let something set the variable for which its '
            "rules wait."
        ),
        example=(
            '{"source_agent": "Writer", "target_agent": "terminate", "condition": "approved"} and '
            '{"source_agent": "Writer", "target_agent": "Writer"}    '
            "(nothing sets approved while Writer speaks)"
        ),
    ),
    Rule(
        code="HAND011",
        severity="error",
        title="Circle of agents without a way out",
        why=(
            "A run can get to a state in which these agents hand off among themselves "
            "and nothing that can still happen leads out of the circle. Such a run spends its "
            "turns and its budget until a limit cuts it off."
        ),
        fix=(
            'Give one agent of the circle a rule to another agent, to "user" or to '
            '"terminate" that applies in that state, or let something set the variable for which '
            "the rules wait."
        ),
        example=(
            '{"source_agent": "Planner", "target_agent": "Writer"} and '
            '{"source_agent": "Writer", "target_agent": "Planner"}'
        ),
    ),
    Rule(
        code="HAND012",
        severity="warning",
        title="A run may never come to an end",
        why=(
            "Weft explores every way a run can go. Here it may get to where no end can be reached, "
            "if code sets a variable or an unknown value is such and such, which the declarations "
            "do not tell; or there are too many states to explore them all."
        ),
        fix=(
            'Add a rule that leads to "user" or "terminate" in that state. Where there are too '
            "many states, let fewer variables decide handoffs, or give them fewer values: bool or "
            'literal["draft", "done"].'
        ),
        example=(
            '{"source_agent": "Reviewer", "target_agent": "Writer", "condition": "score < wanted"} '
            'and {"source_agent": "Writer", "target_agent": "Writer"}'
        ),
    ),
    Rule(
        code="HAND013",
        severity="error",
        title="Condition leaves the strict profile",
        why=(
            'The workflow asks for "condition_profile": "strict": positive tests of environment '
            "and derived variables, joined by at most one and. It promises readers that every "
            "rule can be understood at a glance."
        ),
        fix=(
            "Split the condition into several rules, each with one positive test. For a condition "
            'that needs more, set "condition_profile": "full" in the orchestrator file.'
        ),
        example='{"condition": "not interview_complete or urgent"}',
    ),
    Rule(
        code="HAND014",
        severity="error",
        title="Condition for a model to judge, where that is not enabled",
        why=(
            "A condition that a model judges costs a call each time it is asked, and may be "
            "answered differently in two runs. A workflow must say that it wants this."
        ),
        fix=(
            "Write the condition as an expression over variables, or set "
            '"llm_conditions": true in the orchestrator file.'
        ),
        example='{"condition": "the user sounds angry", "condition_type": "llm"}',
    ),
    Rule(
        code="HAND015",
        severity="error",
        title="Comparison that the variable's type rules out",
        why=(
            "A comparison with a value that the variable can never have is always false (or, with "
            "!=, always true), and ordering what has no order has no answer. The rule looks right "
            "and never does what it says."
        ),
        fix=(
            "Correct the value: its spelling, or quotes around a number, true or false. If the "
            "value is right, add it to the variable's type."
        ),
        example=(
            '"current_domain": {"type": "literal[\\"tech\\", \\"finance\\"]", ...}\n'
            '{"condition": "current_domain == \'technical\'"}'
        ),
    ),
    Rule(
        code="HAND016",
        severity="warning",
        title="Reason on a rule that does not end the run",
        why="The reason is recorded when a run ends. On any other rule nobody ever sees it.",
        fix='Remove "reason", or make "terminate" the target of the rule.',
        example='{"target_agent": "TechSpecialist", "reason": "technical question"}',
    ),
    Rule(
        code="HAND017",
        severity="error",
        title="Rule before the reply without a condition",
        why=(
            "Rules of the scope pre are asked before the agent replies. Without a condition the "
            "word is always passed on, and the agent never gets to say anything."
        ),
        fix='Give the rule a condition, or set "condition_scope": "post".',
        example='{"source_agent": "RouterAgent", "target_agent": "user", "condition_scope": "pre"}',
    ),
    Rule(
        code="HAND018",
        severity="error",
        title="Handoff to a user who is not there",
        why=(
            "A run that a schedule, a form, a webhook or a database starts has no person in it, "
            "and with human_in_the_loop false nobody is asked. The run would wait for ever."
        ),
        fix=(
            'Hand off to an agent or to "terminate". If a person should take part, set '
            "human_in_the_loop to true and let the workflow start with a chat."
        ),
        example=(
            '"trigger": {"type": "schedule", "cron": "0 6 * * *"}\n'
            '{"source_agent": "ReportAgent", "target_agent": "user"}'
        ),
    ),
    Rule(
        code="HAND019",
        severity="error",
        title="Nothing to judge",
        why=(
            'The rule has "condition_type": "llm" or "nearest" but no condition. A model cannot '
            "judge, and nothing can be compared with, what is not written."
        ),
        fix=(
            'Write the condition in words, or remove "condition_type" to make the rule the '
            "agent's fallback."
        ),
        example='{"source_agent": "RouterAgent", "target_agent": "user", "condition_type": "llm"}',
    ),
    Rule(
        code="HAND020",
        severity="error",
        title="Default target does not exist",
        why=(
            "The default target takes over whenever no rule applies. If there is nobody of that "
            "name, or the user is named in a workflow without one, the run stops there."
        ),
        fix='Name an agent as agents.json spells it, "terminate", or "user" where a person is.',
        example='"default_target": "RouterAgnet"',
    ),
    Rule(
        code="HAND021",
        severity="error",
        title="Group names somebody who does not exist",
        why=(
            "The members of a group are agents, each once, and what comes after it is an agent, a "
            "group, the user or the end. A run could not start the group, or not leave it."
        ),
        fix="Name agents as agents.json spells them.",
        example='{"name": "Readers", "members": ["LegalAgent", "FinanceAgnet"], "next": "Writer"}',
    ),
    Rule(
        code="HAND022",
        severity="error",
        title="Group cannot be merged as it says",
        why=(
            '"merge": "custom" calls a function of the package with the replies of the members. '
            "Without a function there is nothing to call, and with another way to merge a "
            "function is never called."
        ),
        fix='Write both, "merge": "custom" and "function": "module:function", or neither.',
        example='{"name": "Readers", "members": ["LegalAgent", "FinanceAgent"], "merge": "custom"}',
    ),
    Rule(
        code="HAND023",
        severity="warning",
        title="Members of a group set the same variable",
        why=(
            "Members work side by side, each with the variables for itself. When the group is "
            "done, of several that have set one variable the first counts, in the order of the "
            "members, whoever was faster; what the others have set is refused if it differs."
        ),
        fix=(
            "Declare for the variable how to merge: append for lists, merge for objects. Or give "
            "each member a variable of its own, or let the agent after them set it."
        ),
        example="two members with an agent_text trigger for the variable verdict",
    ),
    Rule(
        code="HAND024",
        severity="error",
        title="Agent cannot hand off by tools",
        why=(
            "With handoff_tools the model is offered one tool for each target of the agent's "
            "rules, named hand_off_to_ and the target. Without rules there is none; and if a tool "
            "of the agent has that name already, the model calls that one and nobody is next."
        ),
        fix=(
            "Add the handoffs that the model may choose among, or remove handoff_tools. Give a "
            "tool of such a name another one."
        ),
        example='{"agent_name": "RouterAgent", "handoff_tools": true}    (no rule of RouterAgent)',
    ),
    Rule(
        code="HAND025",
        severity="error",
        title="Threshold where nothing is compared",
        why=(
            "The threshold says how near a message must be to the description of a rule. Rules of "
            "other types compare nothing, so it would have no effect."
        ),
        fix='Set "condition_type": "nearest", or remove "threshold".',
        example='{"condition": "is_refund", "threshold": 0.5}',
    ),
)
