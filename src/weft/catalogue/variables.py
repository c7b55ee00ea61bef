"""Variables, exposure, states, environments and structured outputs."""

from typing import Final

ENTRIES: Final = r"""
VAR002 error: Value does not fit the type
  why: Every value is validated before it is stored. This one would be refused at the start of the
    run, or when the trigger fires.
  fix: Correct the value or the type. A trigger without "value" sets true. For a value that may be
    missing use optional[T].
  example: "max_items": {"type": "int", "source": {"type": "static", "value": "25"}}

VAR003 error: Circular computation
  why: Each of these variables is computed from the next one, so none ever gets a value.
  fix: Compute one of them from something else.
  example: "a": {"source": {"type": "computed", "computation": "b", "inputs": ["b"]}, ...}
    "b": {"source": {"type": "computed", "computation": "a", "inputs": ["a"]}, ...}

VAR004 error: Inputs do not match the computation
  why: A computed variable is evaluated when one of its inputs changes, so the inputs must be
    exactly the variables that the condition uses.
  fix: Add the missing variable to "inputs", or remove the unused one.
  example: "source": {"type": "computed", "computation": "score > limit", "inputs": ["score"]}

VAR005 error: Secret in the package
  why: A package is copied, shared and versioned. A key or password in it is known to everybody
    who has the files, and one in a prompt to the model as well.
  fix: Use an environment variable with "secret": true and remove the value here. Then revoke the
    old one. If the text is not a secret, rename it or write an obvious placeholder.
  example: "api_key": {"source": {"type": "static", "value": "9f2c81d07be4"}, ...}

VAR008 error: Trigger waits for a tool that never asks
  why: The trigger "ui_response" fires on a person's answer, and this tool is not a UI tool.
  fix: Use "tool_response", or declare the tool as UI_Tool.
  example: {"type": "ui_response", "tool": "action_pln", "response_key": "accepted"}

VAR009 error: Unusable regular expression
  why: The pattern does not compile, is longer than 1000 characters, or uses lookaround or
    backreferences. It is applied to everything that is said, so it must run in linear time.
  fix: Correct the pattern at the column of the finding, or use "contains" or "equals".
  example: "match": {"regex": "(?=.*done)"}

VAR010 warning: Prompt does not mention the trigger text
  why: The trigger fires when the agent says this text, but the prompt does not contain it as
    separate words (for "exact" in the same case).
  fix: Tell the agent in its prompt when to say the text, in the same words.
  example: {"type": "agent_text", "agent": "InterviewAgent", "match": {"equals": "NEXT"}}
    "content": "Ask about the project until you know enough."

VAR011 warning: Variable is never set
  why: A derived variable changes by triggers, writers or tool code. This one has none, so it
    keeps its default, and every condition on it has a fixed answer.
  fix: Add a trigger, list the agents or tools that set it in "writers", or make it static.
  example: "approved": {"type": "bool", "source": {"type": "derived", "default": false}}

VAR013 error: Read-only variable with writers
  why: Static, environment, database, external, file and computed variables cannot be set by a
    run.
  fix: Remove "writers", or use a derived source, or an entity source if the value should be
    stored.
  example: "plan": {"source": {"type": "static", ...}, "writers": ["set_plan"], ...}

VAR014 error: Trigger value has no effect
  why: The trigger takes its value from an argument, from the tool's result, or from its
    transition, so "value" is never used.
  fix: Remove "value", or remove the other one.
  example: {"type": "tool_call", "tool": "rate", "argument": "stars", "value": 5}

VAR018 error: Forbidden file
  why: A variable can be shown to a model, so it reads only files inside the package or workspace,
    and none that usually hold secrets.
  fix: Put the file into the package and write its path with /, such as data/prices.json. For a
    secret use an environment variable.
  example: "source": {"type": "file", "path": "../.env"}

VAR020 error: Secret with a visible source
  why: The value of a static, derived, computed or entity variable is stored in the package or in
    the record of the run.
  fix: Use an environment, database, external or file source, or remove "secret".
  example: "crm_key": {"secret": true, "source": {"type": "static", "value": "..."}, ...}

VAR021 error: Forbidden write in code
  why: Every write is checked, and this one is always refused: the variable is unknown or
    read-only, the function is not among its writers, the value does not fit, or no transition
    allows it. The tool would fail.
  fix: Correct the name or value in the code, or declare the variable with a derived or entity
    source and add the function to "writers". Only writes through a parameter context_variables
    (in the declared function also context) are checked.
  example: context_variables.set("order_fuond", True)

VAR022 error: Source cannot be read
  why: The source would fail, or would not work as written: an invalid query, a document stored in
    a variable that is not an object, an invalid address, or an invalid name of an environment
    variable. A missing file without a default is a warning.
  fix: Correct the key of the finding. A query uses $eq, $ne, $gt, $gte, $lt, $lte, $in and
    $exists, joined by $and and $or. "secret_env" takes the name of an environment variable, not
    the secret.
  example: "auth": {"type": "bearer", "secret_env": "crm key"}

VAR023 error: Invalid start
  why: A schedule needs a cron expression with five fields and a time zone; and a schedule,
    database or webhook start has no user to talk to.
  fix: Write cron as minute, hour, day, month and weekday, each *, a number, a range a-b or a
    list, with /n for steps. A time zone is UTC or looks like Europe/Berlin. Remove startup_mode
    where no user takes part.
  example: "trigger": {"type": "schedule", "cron": "every day at nine"}

VAR025 error: Routing variable is not always read
  why: A variable with "refresh_strategy": "on_demand" is read only for agents that are shown it.
    A handoff would be decided by an old or missing value.
  fix: Set "refresh_strategy" to "per_phase" or "once", or remove "routing".
  example: "plan": {"source": {"type": "database", "refresh_strategy": "on_demand", ...},
    "routing": true, ...}

VAR026 error: Source needs a value that is not available yet
  why: Everything that is read once is read at the same time, before the first turn, and
    everything that is read for a turn likewise. A source cannot be found by another one that is
    read then, nor by a secret.
  fix: Use a built-in, static, environment or derived variable. A source that is read per turn may
    use one that is read once. For the secret of a service use "auth".
  example: "account": {"source": {"type": "database", "search_by": "account_id", ...}, ...}
    "account_id": {"source": {"type": "database", "search_by": "user_id", ...}, ...}

VAR027 error: Invalid settings of a plug-in trigger
  why: The plug-in declares which keys a trigger of its type has. Other settings cannot be used.
  fix: Correct the key as the plug-in describes it.
  example: {"type": "x:every_nth", "n": "often"}    (n is a whole number)

VAR028 error: Merge has no effect
  why: "merge" combines what members of a group set in parallel: "append" combines lists, "merge"
    combines objects. The variable has another type, or a run cannot set it.
  fix: Use a derived or entity source, with the type list for "append" and dict or a model for
    "merge". Or remove "merge".
  example: "verdict": {"type": "str", "merge": "append", "source": {"type": "derived"}}

EXPO002 error: Prompt inserts a variable that the agent is not shown
  why: An agent sees only the variables in its list in context_variables.json.
  fix: Add the variable to the list (`weft check --fix` does it), or remove it from the prompt.
  example: "agents": {"RouterAgent": {"variables": []}}
    "content": "The customer has the plan {plan}."

EXPO005 warning: Prompt mentions a variable that the agent is not shown
  why: The prompt names the variable, but the agent does not see its value. Models tend to invent
    one.
  fix: Add the variable to the agent's list and insert it with {name}, or remove the name from the
    prompt.
  example: "content": "Answer according to customer_tier."    (customer_tier is not listed)

EXPO006 warning: Malformed placeholder
  why: Only {name} is replaced by a value. With spaces or a path inside, the text stays as it is;
    with $ or a second brace before it, that character stays in the text.
  fix: Write {name} to insert the value, or {{name}} for the literal text. For a part of a value
    declare a variable of its own.
  example: "content": "Plan: { plan }, name: ${customer_name}, city: {address.city}"

EXPO007 error: Agent is not a reader of the variable
  why: The variable lists its readers, and this agent is not one of them.
  fix: Add the agent to "readers", or remove the variable from its list.
  example: "salary": {"readers": ["PayrollAgent"], ...}
    "agents": {"GreeterAgent": {"variables": ["salary"]}}

EXPO008 error: Agent is shown a secret
  why: A model can repeat what it sees. The value of a secret variable, and everything computed
    from it, is used only by adapters and tools.
  fix: Remove the variable from the agent's list and prompt, and let a tool use the secret. If it
    is not a secret, remove "secret".
  example: "crm_key": {"secret": true, ...}
    "agents": {"RouterAgent": {"variables": ["crm_key"]}}

EXPO010 error: Context contains a variable that the agent is not shown
  why: An agent sees only the variables in its list. Its context can select from the list, not add
    to it.
  fix: Add the variable to the list, correct the name, or remove it from the context. Without
    names, all listed variables are sent.
  example: "context": [{"kind": "variables", "names": ["plan"]}]
    "agents": {"RouterAgent": {"variables": []}}

EXPO011 error: Text exceeds its token limit
  why: A fixed text is never cut, so it must fit its own max_tokens. Four characters count as one
    token.
  fix: Shorten the text, or raise or remove max_tokens.
  example: {"kind": "literal", "text": "Answer in one sentence.", "max_tokens": 2}

EXPO012 error: Duplicate content in a context
  why: The agent would be sent the conversation, or a variable, twice with every call.
  fix: Keep one of the two.
  example: "context": [{"kind": "history"}, {"kind": "history", "max_messages": 5}]

EXPO013 warning: Agent is shown a value named like a secret
  why: The environment variable has KEY, TOKEN, SECRET, PASSWORD or a similar word in its name. A
    model can repeat what it sees, and the value is stored in the record of the run.
  fix: Set "secret" to true and let a tool use it. If the value is not a secret, rename the
    environment variable.
  example: "crm_key": {"source": {"type": "environment", "env_var": "CRM_KEY"}, ...}
    "agents": {"RouterAgent": {"variables": ["crm_key"]}}

STATE001 error: Default is not a state
  why: The states are the values in "transitions". A variable that starts with another value can
    never change.
  fix: Use one of the states as default, or add a transition from the default.
  example: "default": "new",
    "transitions": [{"from": "open", "to": "closed"}]

STATE002 error: Unreachable state
  why: No sequence of transitions leads from the default to this state.
  fix: Add the missing transition, or remove the state.
  example: "default": "open",
    "transitions": [{"from": "open", "to": "closed"}, {"from": "review", "to": "closed"}]

STATE003 warning: Final state is never tested
  why: Once the variable has this value it keeps it, and no handoff tests it.
  fix: Add a handoff that tests the state, or a transition from it.
  example: "default": "open",
    "transitions": [{"from": "open", "to": "closed"}]    (no condition mentions 'closed')

STATE004 error: Trigger sets a value without a transition
  why: Only changes listed in "transitions" are allowed, so the trigger has no effect.
  fix: Correct the value, or add a transition to it.
  example: "transitions": [{"from": "open", "to": "closed"}],
    "triggers": [{"type": "tool_call", "tool": "finish", "value": "done"}]

ENV001 warning: Handoff depends on an environment variable
  why: A run in production does not see environment variables, so the handoff behaves differently
    there. With the profile production it is an error.
  fix: Let the handoff depend on a derived variable, or make the value static.
  example: "beta": {"type": "bool", "source": {"type": "environment", "env_var": "BETA"}}
    {"condition": "beta", "target_agent": "BetaAgent"}

ENV002 warning: Prompt depends on an environment variable
  why: A run in production does not see environment variables, so the prompt would have a gap.
    With the profile production it is an error.
  fix: Make the value static, or read it from a database, file or service.
  example: "region": {"type": "str", "source": {"type": "environment", "env_var": "REGION"}}
    "content": "You answer for the region {region}."

ENV003 error: Variable is suppressed here
  why: With CONTEXT_INCLUDE_SCHEMA=0 database variables do not exist, and in production
    environment variables do not. A condition or computation that needs one has no answer, and a
    source that is found by one, such as the "url" of a service, has its default or fails.
  fix: Use another variable, or run the package where the variable exists.
  example: "plan": {"type": "str", "source": {"type": "database", ...}}
    {"condition": "plan == 'gold'", ...}    with CONTEXT_INCLUDE_SCHEMA=0

OUT005 error: Recursive model
  why: Every value of the model must contain another value of the same model, so no finite reply
    fits.
  fix: Make one of the fields optional[...], list[...] or dict[...].
  example: {"name": "Category", "fields": {"parent": {"type": "Category"}}}
"""
