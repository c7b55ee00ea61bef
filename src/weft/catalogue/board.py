"""Family BOARD: boards whose artifacts reach nobody, and agents that wait for what never comes."""

from typing import Final

from weft.findings import Rule

RULES: Final[tuple[Rule, ...]] = (
    Rule(
        code="BOARD001",
        severity="error",
        title="More than one way to work together",
        why=(
            "A workflow is a conversation, a flow or a board. On a board artifacts say who works, "
            "so handoffs, a first agent, groups and what is said of replies would do nothing."
        ),
        fix="Remove what the finding names, or remove board.json.",
        example=(
            'orchestrator.json: {"workflow_name": "NewsDesk", "initial_agent": "Editor"}    (with '
            "board.json)"
        ),
    ),
    Rule(
        code="BOARD002",
        severity="error",
        title="Agent of the board is not declared",
        why=(
            "board.json says how an agent takes part; who it is stands in agents.json. Without an "
            "entry there, it has no prompt, no model and no tools."
        ),
        fix="Correct the name, or add the agent to agents.json.",
        example='{"agents": [{"agent": "repotrer"}]}    (agents.json has reporter)',
    ),
    Rule(
        code="BOARD003",
        severity="error",
        title="Agent is not on the board",
        why=(
            "Agents of a board are woken by artifacts or by a clock. What has no entry in "
            "board.json is woken by neither, and never does anything."
        ),
        fix=(
            "Say in board.json what the agent consumes and publishes, or remove it from "
            "agents.json."
        ),
        example=(
            'agents.json: [{"agent_name": "reporter"}, {"agent_name": "editor"}]\n'
            'board.json:  "agents": [{"agent": "reporter"}]'
        ),
    ),
    Rule(
        code="BOARD004",
        severity="error",
        title="Agent stands on the board twice",
        why=(
            "Subscriptions, labels and limits belong to one entry of the agent. Of two entries, "
            "one would silently win."
        ),
        fix="Put what both say into one entry: an agent may have any number of subscriptions.",
        example='"agents": [{"agent": "editor", ...}, {"agent": "editor", ...}]',
    ),
    Rule(
        code="BOARD005",
        severity="error",
        title="Unknown type of artifacts",
        why=(
            "Only types that the board lists under `artifacts` can be published. What consumes, "
            "publishes or looks for another one waits for what never comes."
        ),
        fix="Correct the name, or add the type to `artifacts`.",
        example=(
            '{"artifacts": ["Story"], "agents": [{"agent": "editor", "consumes": [{"types": '
            '["Storry"]}]}]}'
        ),
    ),
    Rule(
        code="BOARD006",
        severity="error",
        title="Type of artifacts names no model",
        why=(
            "A name under `artifacts` is a model of structured_outputs, which says what payloads "
            "look like. Without it, nothing could be published."
        ),
        fix=(
            "Correct the name, declare the model, or write an object with `name` and `schema` "
            "instead."
        ),
        example='{"artifacts": ["Storry"]}    (the model is called Story)',
    ),
    Rule(
        code="BOARD007",
        severity="error",
        title="Type of artifacts is given twice",
        why=(
            "Subscriptions name types, and an agent says of each type once how it is published. Of "
            "two of one name, one would silently win. Tick is what schedules publish."
        ),
        fix="Remove one of the two, or give it another name.",
        example='{"artifacts": ["Story", {"name": "Story", "schema": {"type": "object"}}]}',
    ),
    Rule(
        code="BOARD008",
        severity="warning",
        title="Nobody publishes or consumes a type",
        why=(
            "Artifacts of the type can come from outside, but wake nobody. It is left over, or a "
            "subscription was forgotten."
        ),
        fix="Say who consumes or publishes it, or remove it from `artifacts`.",
        example='{"artifacts": ["Story", "Photo"]}    (and no agent names Photo)',
    ),
    Rule(
        code="BOARD009",
        severity="error",
        title="Schema of a type cannot be used",
        why=(
            "Payloads are objects and are held against the schema whenever something is published. "
            "One that is no JSON Schema, or describes something else, would let nothing through."
        ),
        fix="Write a JSON Schema of an object; references may lead to `$defs` inside of it.",
        example='{"name": "Photo", "schema": {"type": "array", "items": {"type": "string"}}}',
    ),
    Rule(
        code="BOARD010",
        severity="error",
        title="Nothing wakes an agent",
        why=(
            "An agent of a board works when an artifact comes that it consumes, or when its "
            "schedule says so. With neither, it never does."
        ),
        fix="Say under `consumes` what wakes it, or give it a `schedule`.",
        example='{"agent": "editor", "publishes": [{"type": "Issue"}]}',
    ),
    Rule(
        code="BOARD011",
        severity="error",
        title="Condition cannot be read",
        why=(
            "`where`, `validate` and `activation` are conditions as in handoffs, over the fields "
            "of a payload or the counts of types; `where` and `validate` may also name a function. "
            "One that cannot be read would fail for every artifact."
        ),
        fix="Correct the condition where the finding points.",
        example='{"types": ["Lead"], "where": "urgency = 3"}    (meant is ==)',
    ),
    Rule(
        code="BOARD012",
        severity="error",
        title="Type has no such field",
        why=(
            "A condition, a key to join by or a template asks for a field that payloads of the "
            "type never have, so it cannot be answered, or stays empty."
        ),
        fix="Correct the name, or add the field to the type.",
        example='{"types": ["Lead"], "where": "urgncy > 3"}    (the field is urgency)',
    ),
    Rule(
        code="BOARD013",
        severity="error",
        title="Code of a board cannot be found",
        why=(
            "Functions, providers, engines and components are named as module:name. The package "
            "has no such file, or the file does not define the name."
        ),
        fix=(
            "Correct the reference: tools.news:is_local is is_local in tools/news.py. Or write the "
            "code."
        ),
        example='{"types": ["Lead"], "where": "tools.news:is_locl"}    (the code has is_local)',
    ),
    Rule(
        code="BOARD014",
        severity="error",
        title="Package names an object that only a program has",
        why=(
            "local:NAME stands for an object of the program that defines a workflow in code. Files "
            "have no such program, so nothing could be called."
        ),
        fix="Move the code into a file of the package and name it as module:name.",
        example='{"kind": "function", "function": "local:check_facts"}',
    ),
    Rule(
        code="BOARD015",
        severity="error",
        title="Join cannot be made",
        why=(
            "A join brings artifacts of several types together whose keys are the same. It needs "
            "one way to find the key, for each of the types."
        ),
        fix="Name at least two artifacts under `types`, and write `by` or `function`, not both.",
        example=(
            '{"types": ["Story", "Check"], "join": {"by": {"Story": "headline"}, "within_seconds": '
            "60}}"
        ),
    ),
    Rule(
        code="BOARD016",
        severity="warning",
        title="Join waits for ever",
        why=(
            "Where the other artifact never comes, the first one is kept until the correlation is "
            "over, and nobody is told that it was not handled."
        ),
        fix=(
            "Add `within_seconds` or `within_count`: what is not complete by then expires, visibly."
        ),
        example='{"types": ["Story", "Check"], "join": {"by": "headline"}}',
    ),
    Rule(
        code="BOARD017",
        severity="error",
        title="Batch is never full",
        why=(
            "A batch is handled when it has its size or when its time is over. With neither, it "
            "would only grow."
        ),
        fix="Add `size`, `timeout_seconds` or both.",
        example='{"types": ["Lead"], "batch": {}}',
    ),
    Rule(
        code="BOARD018",
        severity="error",
        title="Schedule cannot be kept",
        why=(
            "A schedule says in one way when its agent is woken. With none or several, or with a "
            "cron expression that cannot be read, there is no next time."
        ),
        fix="Write one of every_seconds, daily, at and cron; cron has five fields.",
        example='{"schedule": {"every_seconds": 60, "cron": "0 9 * * 1"}}',
    ),
    Rule(
        code="BOARD019",
        severity="error",
        title="Schedule and batch in one agent",
        why="A batch waits for artifacts, and a tick of the clock is none of them.",
        fix="Let one agent collect the batch and another keep the schedule.",
        example=(
            '{"agent": "clerk", "schedule": {"daily": "06:00"}, '
            '"consumes": [{"types": ["Order"], "batch": {"size": 5}}]}'
        ),
    ),
    Rule(
        code="BOARD020",
        severity="error",
        title="Unknown agent is named on the board",
        why=(
            "Nothing ever comes from an agent that is not on the board, and nobody of that name "
            "can see a private artifact."
        ),
        fix="Correct the name. What comes from outside is published by user:NAME or schedule:NAME.",
        example='{"type": "Issue", "visibility": {"kind": "private", "agents": ["editr"]}}',
    ),
    Rule(
        code="BOARD021",
        severity="warning",
        title="Label that no agent has",
        why=(
            "Only agents with all labels see such an artifact. If nobody has one of them, nobody "
            "sees it."
        ),
        fix="Give the label to an agent, or correct it.",
        example=(
            '{"type": "Issue", "visibility": {"kind": "labelled", "labels": ["stuff"]}}    (agents '
            "have staff)"
        ),
    ),
    Rule(
        code="BOARD022",
        severity="error",
        title="Component is never called",
        why=(
            "A component is called at the hooks that are listed. With none it does nothing; for "
            "the board as a whole there are artifact_published and before_schedule alone."
        ),
        fix="List the hooks that the class defines; move components with other hooks to an agent.",
        example='"components": [{"component": "tools.desk:Clerk", "hooks": []}]',
    ),
    Rule(
        code="BOARD023",
        severity="warning",
        title="Provider has no effect",
        why=(
            "A provider that drops nothing, drops a key that no artifact has, or filters "
            "everything away is rarely meant. With a misspelt key, what should be kept from an "
            "agent reaches it."
        ),
        fix="Correct it as the finding says, or use the provider inside it.",
        example=(
            '{"kind": "redacting", "provider": {"kind": "correlated"}, "drop": ["phon"]}    (the '
            "field is phone)"
        ),
    ),
    Rule(
        code="BOARD024",
        severity="warning",
        title="State that nobody fills",
        why=(
            "A provider of the kind state gives what a component has put into the activation's "
            "state before. Without such a component it fails each time."
        ),
        fix=(
            "Give the agent a component with the hook pre_consume or before_schedule that sets the "
            "key."
        ),
        example='{"agent": "editor", "context": {"kind": "state"}}    (and no components)',
    ),
    Rule(
        code="BOARD025",
        severity="error",
        title="Activation cannot be counted",
        why=(
            "An activation is a condition over how many artifacts of each type the correlation "
            "has. It can name nothing else, and says nothing about partitions or the whole board."
        ),
        fix="Name types of the board, and leave `scope` as it is.",
        example='{"types": ["Lead"], "activation": "Lead >= 3", "scope": "all"}',
    ),
    Rule(
        code="BOARD026",
        severity="warning",
        title="Agent wakes itself",
        why=(
            "With prevent_self_trigger false, what the agent publishes wakes it again. Unless "
            "`where` stops that, only the breaker of the board does, after many model calls."
        ),
        fix="Narrow `where` so that it comes to an end, or remove `prevent_self_trigger`.",
        example=(
            '{"agent": "editor", "prevent_self_trigger": false,\n'
            ' "consumes": [{"types": ["Draft"]}], "publishes": [{"type": "Draft"}]}'
        ),
    ),
    Rule(
        code="BOARD027",
        severity="warning",
        title="Model is not told what to do",
        why=(
            "The model of an agent gets artifacts and the shape of what to publish. Without a "
            "prompt, a description or instructions it has to guess the rest."
        ),
        fix="Write a prompt or a description in agents.json, or `instructions` of the engine.",
        example='{"agent_name": "reporter"}    (and board.json has no instructions for it)',
    ),
    Rule(
        code="BOARD028",
        severity="error",
        title="Context asks for a board that is not there",
        why=(
            "The part board of a context holds what the provider of an agent of a board gives. A "
            "conversation has no providers, so it would always be empty."
        ),
        fix="Remove the part from the context, or write board.json.",
        example='{"agent_name": "RouterAgent", "context": [{"kind": "board"}]}    (a conversation)',
    ),
    Rule(
        code="BOARD029",
        severity="error",
        title="Threshold where nothing is compared",
        why=(
            "The threshold says how near an artifact must be to semantic_match. Without that "
            "nothing is compared, and every artifact of the type wakes the agent."
        ),
        fix="Describe under semantic_match what the artifacts are about, or remove the threshold.",
        example='{"types": ["Message"], "threshold": 0.5}',
    ),
    Rule(
        code="BOARD030",
        severity="error",
        title="Two queries for one comparison",
        why=(
            "A semantic provider compares artifacts with one query: a fixed text, or what stands "
            "in a field of the artifacts that have woken the agent."
        ),
        fix="Keep one of query and query_field.",
        example='{"kind": "semantic", "query": "refunds", "query_field": "question"}',
    ),
)
