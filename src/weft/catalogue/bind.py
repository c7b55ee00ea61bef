"""Families BIND and OUT: names that one file uses and another declares, models among them."""

from typing import Final

from weft.findings import Rule

BIND: Final[tuple[Rule, ...]] = (
    Rule(
        code="BIND001",
        severity="error",
        title="Tool, or tool server, of an agent that does not exist",
        why="Nobody would be offered the tool: its agent never takes part in a run.",
        fix="Name the agent exactly as agents.json spells it, or declare the agent.",
        example='{"agent": "RouterAgnt", "file": "route.py", "function": "set_domain"}',
    ),
    Rule(
        code="BIND002",
        severity="error",
        title="Variables exposed to an agent that does not exist",
        why=(
            "The list has no effect, and the agent that was meant works without the values it is "
            "supposed to see."
        ),
        fix="Name the agent exactly as agents.json spells it, or remove the list.",
        example='"agents": {"Router": {"variables": ["current_domain"]}}',
    ),
    Rule(
        code="BIND003",
        severity="error",
        title="Model bound to an agent that does not exist",
        why="The binding has no effect, and the agent that was meant replies in free text.",
        fix="Name the agent exactly as agents.json spells it, or remove the entry.",
        example='"registry": [{"agent": "Router", "model": "RoutingDecision"}]',
    ),
    Rule(
        code="BIND004",
        severity="error",
        title="Hook or lifecycle tool that waits for an agent in vain",
        why=(
            "It is called at the turns of an agent that does not exist, so never. It is a warning "
            "where the moment belongs to the run, as before_chat, after_chat, on_start, "
            "on_complete and on_fail do: then it is called whatever agent is named."
        ),
        fix=(
            "Name the agent exactly as agents.json spells it, or leave the agent out to have it "
            "called for all agents, or for the run."
        ),
        example='{"hook_type": "update_agent_state", "agent": "Router", "file": "state.py"}',
    ),
    Rule(
        code="BIND005",
        severity="error",
        title="Initial agent is missing or does not exist",
        why="A conversation begins with this agent; without it no run can begin.",
        fix="Set initial_agent to the name of an agent as agents.json spells it.",
        example='{"workflow_name": "Support", "initial_agent": "Router"}',
    ),
    Rule(
        code="BIND006",
        severity="error",
        title="visual_agents names an agent that does not exist",
        why=(
            "Users see only the messages of the agents listed here. A wrong name hides the agent "
            "that was meant."
        ),
        fix="Name the agent exactly as agents.json spells it, or take the name out of the list.",
        example='{"visual_agents": ["RouterAgent", "TechSpecalist"]}',
    ),
    Rule(
        code="BIND007",
        severity="error",
        title="Structured output required, but no model bound",
        why=(
            "Every reply of the agent must fit a model, and there is none to fit: each reply "
            "would be refused."
        ),
        fix=(
            "Bind a model to the agent in the registry of structured_outputs, or set "
            "structured_outputs_required to false."
        ),
        example='{"agent_name": "Clerk", "structured_outputs_required": true}    (no binding)',
    ),
    Rule(
        code="BIND008",
        severity="error",
        title="Reader or writer that does not exist",
        why=(
            "Readers and writers are the only ones with a right to the variable. A name that "
            "belongs to nobody shuts out the one that was meant."
        ),
        fix=(
            "Readers are agents. Writers are agents, functions of tools and lifecycle tools, or "
            "functions of hooks. Use the names under which they are declared."
        ),
        example='"order_status": {"type": "str", "writers": ["updateOrder"], "source": ...}',
    ),
    Rule(
        code="BIND009",
        severity="error",
        title="Runtime extension cannot be mounted",
        why=(
            "The server mounts the router or starts the service when it loads the workflow. If "
            "the code is not there, or the prefix is no path of an address, it cannot."
        ),
        fix=(
            "Write it as module:name from the package folder on, such as tools.api:get_router, "
            "or from the workspace on, and define that name at the top level of the file. A "
            "prefix is for an api_router alone, and is written like orders/new."
        ),
        example='{"kind": "api_router", "entrypoint": "tools.api:get_routes"}',
    ),
    Rule(
        code="BIND010",
        severity="error",
        title="Unknown model provider",
        why="A run cannot ask a model whose provider is not known here, so it does not start.",
        fix="Write PROVIDER:MODEL with one of the providers that the finding names.",
        example='{"agent_name": "RouterAgent", "model": "opnai:gpt-5"}',
    ),
    Rule(
        code="BIND011",
        severity="error",
        title="No agents",
        why="A conversation and a board are carried by agents; without any, no run can start.",
        fix="Declare at least one agent in agents.json.",
        example='{"agents": []}',
    ),
)

OUT: Final[tuple[Rule, ...]] = (
    Rule(
        code="OUT001",
        severity="error",
        title="Type refers to a model that does not exist",
        why="No value could be checked against the type, so nothing could ever be stored under it.",
        fix=(
            "Declare the model in structured_outputs.json, or correct the name. Names of models "
            "are compared letter by letter."
        ),
        example='"last_ticket": {"type": "optional[Tickt]", "source": ...}',
    ),
    Rule(
        code="OUT002",
        severity="error",
        title="Agent bound to a model that does not exist",
        why="There is nothing the replies of the agent could be checked against.",
        fix="Declare the model, correct its name, or write null to let the agent reply freely.",
        example='"registry": [{"agent": "Clerk", "model": "TicketSumary"}]',
    ),
    Rule(
        code="OUT003",
        severity="warning",
        title="Model that nothing uses",
        why=(
            "No agent is bound to the model and no type in use contains it, so it has no effect. "
            "Often the binding was forgotten, and an agent replies in free text by mistake."
        ),
        fix="Bind the model to an agent in the registry, use it in a type, or remove it.",
        example="a model TicketSummary, and a registry that does not mention it",
    ),
    Rule(
        code="OUT004",
        severity="error",
        title="Agent bound twice",
        why="A reply fits one model. With two bindings it is not decided which one counts.",
        fix="Keep one entry for the agent. For either of two shapes, bind a model that has both.",
        example='[{"agent": "Clerk", "model": "Ticket"}, {"agent": "Clerk", "model": null}]',
    ),
    Rule(
        code="OUT005",
        severity="error",
        title="Model contains itself without end",
        why=(
            "Each value would have to contain another value of the same model, which contains "
            "another one, and so on. No finite reply can ever fit."
        ),
        fix="Make one field on the way optional[...], list[...] or dict[...].",
        example='{"name": "Category", "fields": {"parent": {"type": "Category"}}}',
    ),
)
