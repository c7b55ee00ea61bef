"""Family VAR, from VAR022 on: sources, starts and budgets, and when values are there."""

from typing import Final

from weft.findings import Rule

RULES: Final[tuple[Rule, ...]] = (
    Rule(
        code="VAR022",
        severity="error",
        title="Source of a variable cannot work",
        why=(
            "A query or address puts in a variable that nobody declares, a document is found by "
            "something no run has, a query has an operator that no store knows or names a tenant, "
            "a whole document is taken for something that is no object, the address is not one of "
            "http or https, the settings for "
            "signing in name no environment variable or a header that is not used, an env_var is "
            "no such name, or (a warning) a file is not there and there is no default. The value "
            "could never be fetched, or not as it is written."
        ),
        fix=(
            "Correct the field named in the finding. search_by takes a declared or built-in "
            "variable; a query compares fields with $eq, $ne, $gt, $gte, $lt, $lte, $in and "
            '$exists, joined by $and and $or; "secret_env" takes the name of an environment '
            'variable, never the secret itself; "header" counts only for the type header.'
        ),
        example='"auth": {"type": "bearer", "secret_env": "crm key", "header": "X-Key"}',
    ),
    Rule(
        code="VAR023",
        severity="error",
        title="Start of the workflow cannot work",
        why=(
            "The workflow would never start by itself, or not as it says: a schedule needs five "
            "fields and a time zone, a database start needs a condition that can be read, and "
            "with a schedule, database or webhook start there is no person to open the run with."
        ),
        fix=(
            "Write cron as minute (0-59), hour (0-23), day (1-31), month (1-12 or JAN-DEC) and "
            "weekday (0-7 or SUN-SAT); each is *, a number, a range a-b or a list of these, with "
            "/n for every n-th. A time zone is UTC or looks like Europe/Berlin, the path of a "
            "webhook like orders/new. Leave "
            "startup_mode out where no person is there."
        ),
        example='"trigger": {"type": "schedule", "cron": "every day at nine"}',
    ),
    Rule(
        code="VAR024",
        severity="error",
        title="Budget limits nothing, or limits twice",
        why=(
            "A budget without a ceiling has no effect, although it looks as if use were limited. "
            "Of two budgets for one level it could not be told which one counts."
        ),
        fix="Give the budget a ceiling or remove it, and write one budget per level.",
        example='"budgets": [{"level": "run"}, {"level": "user", "tokens": 100000}]',
    ),
    Rule(
        code="VAR025",
        severity="error",
        title="Variable that decides handoffs is not read for all turns",
        why=(
            "Rules are asked between turns, of whatever agent. A variable with the refresh "
            "strategy on_demand is read for the turns of agents that are shown it and for no "
            "others, so a rule would be decided by a value that is old or not there."
        ),
        fix=(
            'Set "refresh_strategy" to "per_phase", which reads it whenever the agent changes, or '
            'to "once". Or remove "routing".'
        ),
        example=(
            '"plan": {"source": {"type": "database", "refresh_strategy": "on_demand", ...}, '
            '"routing": true, ...}'
        ),
    ),
    Rule(
        code="VAR026",
        severity="error",
        title="Source is found by a value that is not there yet",
        why=(
            "All that is read once is read at the same time, before the first turn, and all that "
            "is read for a turn as well. A source cannot be found by another that is read just "
            "then, nor by what is computed from it. A secret has no value in a run at all."
        ),
        fix=(
            "Find it by a variable that has its value before: a built-in, static, environment or "
            "derived one. What is read for turns (per_phase, on_demand) may be found by what is "
            "read once. For a secret of a service use auth."
        ),
        example=(
            '"account": {"source": {"type": "database", "search_by": "account_id", ...}, ...}\n'
            '"account_id": {"source": {"type": "database", "search_by": "user_id", ...}, ...}'
        ),
    ),
    Rule(
        code="VAR027",
        severity="error",
        title="Settings of a plug-in's trigger do not fit",
        why=(
            "A plug-in says which keys a trigger of its kind has and what they hold. What does not "
            "fit cannot be performed, and the workflow does not start."
        ),
        fix="Correct the key that the finding names, as the plug-in describes it.",
        example='{"type": "x:every_nth", "n": "often"}    (n is a whole number)',
    ),
    Rule(
        code="VAR028",
        severity="error",
        title="Merge that can never take place",
        why=(
            "merge says what counts when members of a group set the variable side by side. append "
            "puts together what each has added to a list, merge the keys each has set in an "
            "object. Of another type, or of a variable that nobody sets, nothing can be merged."
        ),
        fix=(
            "Give the variable a derived or entity source, and the type list for append, dict or a "
            'model for merge. Or remove "merge".'
        ),
        example='"verdict": {"type": "str", "merge": "append", "source": {"type": "derived"}}',
    ),
    Rule(
        code="VAR029",
        severity="error",
        title="Code reads a variable that is not declared",
        why=(
            "A variable that is not declared never has a value: `get` returns its default, and "
            "`[...]` raises KeyError. Only reads through a parameter context_variables (in the "
            "declared function also context) are checked."
        ),
        fix="Correct the name in the code, or declare the variable in context_variables.json.",
        example='context_variables.get("amout")    (declared: amount)',
    ),
)
