"""Handoffs, bindings, tools and user interfaces."""

from typing import Final

ENTRIES: Final = r"""
HAND006 error: Second fallback
  why: A handoff without a condition applies when no other does. Of two such handoffs only the
    first can ever apply.
  fix: Give one of the two a condition, or remove it.
  example: {"source_agent": "RouterAgent", "target_agent": "TechSpecialist"}
    {"source_agent": "RouterAgent", "target_agent": "user"}

HAND007 warning: Ambiguous priority
  why: Two handoffs of one agent may apply at the same time and have the same priority, so their
    order in the file decides.
  fix: Give them different priorities (the lower number is first), or conditions that exclude each
    other. Conditions that 4096 tries cannot separate count as overlapping.
  example: {"source_agent": "RouterAgent", "target_agent": "TechAgent", "condition": "urgent"}
    {"source_agent": "RouterAgent", "target_agent": "BillingAgent", "condition": "paid"}

HAND008 error: Agent is unreachable
  why: No run ever reaches this agent, or it always hands off before it can reply. Its prompt,
    tools and handoffs have no effect.
  fix: Add a handoff to the agent, or correct the condition of the one that should lead to it: the
    finding says why it never applies. Remove the agent if it is not needed.
  example: {"source_agent": "RouterAgent", "target_agent": "TechSpecialist",
    "condition": "current_domain == 'tech'"}    (nothing ever sets current_domain to tech)

HAND009 warning: Handoff never applies
  why: In no reachable state does this handoff decide: its condition is never true at that moment,
    or an earlier handoff always applies first.
  fix: Compare the condition with the values in the finding. Narrow the earlier handoff or give
    this one a lower priority number. Remove it if the case cannot occur.
  example: {"source_agent": "Reviewer", "target_agent": "user", "condition": "approved",
    "priority": 1} before {..., "target_agent": "Writer",
    "condition": "approved and urgent", "priority": 2}

HAND010 error: Agent hands off to itself forever
  why: A run can reach a state in which this agent hands off to itself again and again, and
    nothing leads to the user or to the end. Such a run continues until a limit stops it.
  fix: Add a handoff to "user" or "terminate" for that state, or let something set the variable
    that the handoffs wait for.
  example: {"source_agent": "Writer", "target_agent": "terminate", "condition": "approved"}
    and {"source_agent": "Writer", "target_agent": "Writer"}
    (nothing sets approved while Writer speaks)

HAND011 error: Endless cycle of agents
  why: A run can reach a state in which these agents hand off to each other and nothing leads out.
    Such a run continues until a limit stops it.
  fix: Add a handoff to another agent, "user" or "terminate" for that state, or let something set
    the variable that the handoffs wait for.
  example: {"source_agent": "Planner", "target_agent": "Writer"}
    and {"source_agent": "Writer", "target_agent": "Planner"}

HAND012 warning: Run may never end
  why: A run may reach a state without a way to the end, depending on code or on values that the
    declarations do not determine; or there are too many states to explore.
  fix: Add a handoff to "user" or "terminate" for that state. If there are too many states, let
    fewer variables decide handoffs or give them fewer values: bool or literal["draft", "done"].
  example: {"source_agent": "Reviewer", "target_agent": "Writer",
    "condition": "score < wanted"}
    and {"source_agent": "Writer", "target_agent": "Writer"}

HAND016 warning: Reason without an end
  why: The reason is recorded when a run ends. On any other handoff it has no effect.
  fix: Remove "reason", or set the target to "terminate".
  example: {"target_agent": "TechSpecialist", "reason": "technical question"}

HAND018 error: Handoff to a missing user
  why: A run started by a schedule, form, webhook or database has no user, and with
    human_in_the_loop false the user is not asked. The run would wait forever.
  fix: Hand off to an agent or to "terminate". To include a user, set human_in_the_loop to true
    and let the workflow start with a chat.
  example: "trigger": {"type": "schedule", "cron": "0 6 * * *"}
    {"source_agent": "ReportAgent", "target_agent": "user"}

HAND023 warning: Members of a group set the same variable
  why: Members work in parallel with their own copies of the variables. When the group ends, the
    first member in the list wins; a different value of another member is discarded.
  fix: Set "merge" on the variable ("append" for lists, "merge" for objects), use one variable per
    member, or let the agent after the group set it.
  example: two members with an agent_text trigger for the variable verdict

HAND024 error: Agent cannot hand off by tools
  why: With handoff_tools the model gets one tool per handoff target, named hand_off_to_TARGET.
    Without handoffs there are none, and a declared tool of that name hides it.
  fix: Add the handoffs, or remove handoff_tools. Rename a tool with such a name.
  example: {"agent_name": "RouterAgent", "handoff_tools": true}    (no rule of RouterAgent)

HAND025 warning: Outcome without a handoff
  why: With the patterns Pipeline, Redundant and FeedbackLoop, a run continues with the next agent
    where no handoff applies. An outcome that was forgotten continues there too, without a word.
  fix: Add a handoff for the outcome. If the run should continue with the next agent, add a handoff
    without a condition to it.
  example: "outcome": literal["hire", "stop"], set by a tool of Interviewer
    {"source_agent": "Interviewer", "condition": "outcome == 'hire'", "target_agent": "Offer"}

BIND004 error: Agent at a hook point of the run
  why: before_chat, after_chat, on_start, on_complete and on_fail belong to the run. A trigger for
    one agent never fires there; a hook is called for all agents (a warning).
  fix: Remove "agent", or use before_agent or after_agent.
  example: {"hook_type": "update_agent_state", "agent": "Router", "file": "state.py"}

BIND005 error: Missing initial agent
  why: A conversation starts with this agent.
  fix: Set initial_agent to the name of an agent in agents.json.
  example: {"workflow_name": "Support", "initial_agent": "Router"}

BIND007 error: Structured output without a model
  why: Every reply of the agent must fit a model, but none is bound to it, so every reply would be
    refused.
  fix: Bind a model to the agent in the registry of structured_outputs.json, or set
    structured_outputs_required to false.
  example: {"agent_name": "Clerk", "structured_outputs_required": true}    (no binding)

BIND011 error: No agents
  why: A conversation needs at least one agent.
  fix: Declare an agent in agents.json.
  example: {"agents": []}

TOOL004 warning: Untyped tool parameter
  why: The description of a tool's arguments is made from type hints. Without one the model
    guesses, and the value is not checked. A hint with a name that the file does not define is an
    error.
  fix: Write the type after the parameter: order_id: str. Parameters named context_variables or
    context need none. Import the names that a hint uses.
  example: async def find(order_id, limit: int = 5): ...

TOOL006 warning: Missing or long tool description
  why: A model chooses tools by their descriptions and reads all of them before every reply.
    Without one it gets the first line of the docstring. More than 140 characters cost tokens
    every time.
  fix: Describe in one sentence what the tool does and when to call it, in "description" or in the
    first line of the docstring.
  example: {"function": "find_order", "description": ""}

TOOL009 error: Incomplete automatic tool call
  why: A structured output calls a tool only if the agent has auto_tool_mode, one of its tools has
    auto_invoke, and a model is bound to the agent. It is a warning where no tool has auto_invoke.
  fix: Add what the message names, or remove the setting.
  example: {"agent_name": "Clerk", "auto_tool_mode": true}    (no tool has auto_invoke)

TOOL010 warning: UI tool never asks
  why: A UI tool shows a component and waits for an answer by calling use_ui_tool. Neither its
    function nor the code it uses does that.
  fix: Call use_ui_tool and await its result, or declare the function as Agent_Tool.
  example: {"tool_type": "UI_Tool", "file": "approve.py", "function": "approve_plan"}

TOOL012 error: Second automatic tool
  why: A structured output makes one call. With two tools that have auto_invoke it is not clear
    which one runs.
  fix: Keep auto_invoke on one tool; if both must run, let that one call the other.
  example: [{"agent": "Clerk", "function": "save", "auto_invoke": true},
     {"agent": "Clerk", "function": "notify", "auto_invoke": true}]

TOOL013 error: Invalid tool server
  why: The url must be a full address, and a secret is named by its environment variable.
  fix: Write "url" as a full address. Give secrets as {"secret_env": "NAME"}: in "env" for a
    program, in "auth" for a server.
  example: "mcp_servers": [{"name": "crm", "url": "crm.example/mcp"}]

TOOL014 warning: Unencrypted tool server
  why: The url begins with http:// and leads to another machine, so others can read and change the
    traffic, including the secret.
  fix: Use https://, or run the server on this machine (localhost or 127.0.0.1).
  example: "mcp_servers": [{"name": "crm", "url": "http://crm.example/mcp"}]

UI001 error: UI tool with nothing to show
  why: A UI tool needs a component, tools/<component>.jsx, or a response_schema from which a form
    is made. It is a warning where a form can be made but an unused component has a similar name.
  fix: Add a response_schema, write the component, or correct its name.
  example: {"tool_type": "UI_Tool", "function": "approve_plan",
     "ui": {"component": "ApprovalCard", "mode": "inline"}}    (no ApprovalCard.jsx)

UI003 error: Invalid JSON Schema
  why: The form is made from the schema, and the answer is validated against it.
  fix: Use the types string, integer, number, boolean, array, object and null. `properties` is an
    object, `enum` a list, and `required` a list of names in `properties`.
  example: {"type": "object", "properties": {"amount": {"type": "int"}}}

UI005 error: Component without one default export
  why: The default export of the file is shown. Without one there is nothing to show; with two the
    file cannot be compiled.
  fix: Write `export default` before the component, and only there.
  example: function ApprovalCard(props) { ... }    (nothing is exported)

UI006 error: Variable does not accept every answer
  why: The response_schema allows an answer that the variable's type refuses.
  fix: Allow the same values in both: `enum` in the schema and literal[...] in the type, or widen
    the type.
  example: "decision": {"type": "literal[\"yes\", \"no\"]", "source": ...}
    response_schema: {"properties": {"decision": {"enum": ["yes", "no", "later"]}}}

UI008 warning: Agent cannot ask for approval
  why: human_interaction only limits how many replies an agent gives in a row. A person approves
    by answering a UI tool, and this agent has none.
  fix: Give the agent a UI_Tool that asks, or change human_interaction.
  example: {"agent_name": "RefundAgent", "human_interaction": "approval"}    (no UI_Tool)

UI010 error: Variable is set from a secret field
  why: A field with writeOnly or the format password is never stored: only the tool that asked
    gets it. A variable is stored and shown to agents.
  fix: Use the secret inside the tool, and set the variable from another field. If the field is
    not secret, remove "writeOnly" or "format".
  example: {"type": "ui_response", "tool": "sign_in", "response_key": "pin"}
    response_schema: {"properties": {"pin": {"type": "string", "format": "password"}}}

UI011 error: Answer is not awaited
  why: use_ui_tool is asynchronous. Without `await` the user is not asked, and the tool returns
    a coroutine instead of the answer.
  fix: Write `await use_ui_tool(...)` in an `async def`.
  example: return use_ui_tool("approve_plan", {"plan": plan})
"""
