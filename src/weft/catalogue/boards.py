"""Boards."""

from typing import Final

ENTRIES: Final = r"""
BOARD001 error: Board mixed with another mode
  why: A workflow is a conversation, a flow or a board. On a board artifacts wake agents, so
    handoffs, an initial agent and groups have no effect.
  fix: Remove what the finding names, or remove board.json.
  example: orchestrator.json: {"workflow_name": "NewsDesk", "initial_agent": "Editor"}
    (with board.json)

BOARD009 error: Invalid artifact schema
  why: Payloads are objects and are validated when they are published. The schema is not a JSON
    Schema, or does not describe an object.
  fix: Write a JSON Schema of an object; references may lead to `$defs` inside it.
  example: {"name": "Photo", "schema": {"type": "array", "items": {"type": "string"}}}

BOARD010 error: Agent is never woken
  why: An agent of a board works when an artifact arrives that it consumes, or on a schedule. This
    one has neither.
  fix: Add "consumes" or "schedule".
  example: {"agent": "editor", "publishes": [{"type": "Issue"}]}

BOARD015 error: Invalid join
  why: A join combines artifacts of several types with the same key. It needs at least two types
    and the key of each.
  fix: List at least two types, and a key for each of them.
  example: {"types": ["Story", "Check"], "join": {"by": {"Story": "headline"},
    "within_seconds": 60}}

BOARD016 warning: Join without a limit
  why: If the other artifact never arrives, the first one waits until the correlation ends.
  fix: Add "within_seconds" or "within_count": an incomplete join then expires with an event.
  example: {"types": ["Story", "Check"], "join": {"by": "headline"}}

BOARD018 error: Invalid schedule
  why: The cron expression has five fields: minute, hour, day, month and weekday.
  fix: Write each field as *, a number, a range a-b or a list, with /n for steps.
  example: {"schedule": {"cron": "61 * * * *"}}

BOARD019 error: Schedule and batch in one agent
  why: A batch collects artifacts; a tick of a schedule is not one of them.
  fix: Use one agent for the batch and another for the schedule.
  example: {"agent": "clerk", "schedule": {"daily": "06:00"}, "consumes": [{"types": ["Order"],
    "batch": {"size": 5}}]}

BOARD022 error: Component is never called
  why: A component of the whole board can use only artifact_published and before_schedule.
  fix: Move a component with other hooks to an agent.
  example: {"artifacts": [], "components": [{"component": "tools.desk:Clerk",
    "hooks": ["pre_consume"]}]}

BOARD023 warning: Provider has no effect
  why: The provider drops nothing, drops a field that no artifact has, or filters everything out.
    With a misspelt field the agent sees what it should not.
  fix: Correct it as the finding says, or use the inner provider alone.
  example: {"kind": "redacting", "provider": {"kind": "correlated"}, "drop": ["phon"]}
    (the field is phone)

BOARD024 warning: State is never filled
  why: A state provider returns what a component has put into the state of the activation. This
    agent has no such component, so it fails every time.
  fix: Add a component with the hook pre_consume or before_schedule that sets the key.
  example: {"agent": "editor", "context": {"kind": "state"}}    (and no components)

BOARD025 error: Invalid activation
  why: An activation counts the artifacts of one correlation, not of partitions or the whole
    board.
  fix: Remove "scope" or "activation".
  example: {"types": ["Lead"], "activation": "Lead >= 3", "scope": "all"}

BOARD026 warning: Agent wakes itself
  why: With prevent_self_trigger false, the agent consumes what it publishes. Unless `where` stops
    it, only max_wakes_per_input ends the loop.
  fix: Narrow `where`, or remove "prevent_self_trigger".
  example: {"agent": "editor", "prevent_self_trigger": false,
     "consumes": [{"types": ["Draft"]}], "publishes": [{"type": "Draft"}]}

BOARD027 warning: Model without instructions
  why: The model gets artifacts and the schema of the result, but no prompt, description or
    instructions.
  fix: Write a prompt or description in agents.json, or "instructions" of the engine.
  example: {"agent_name": "reporter"}    (and board.json has no instructions for it)

BOARD028 error: Board context without a board
  why: The part "board" of a context holds what a provider returns. A conversation has no
    providers.
  fix: Remove the part, or write board.json.
  example: {"agent_name": "RouterAgent", "context": [{"kind": "board"}]}    (a conversation)
"""
