"""Family FLOW: steps that cannot be done, conditions that ask in vain, paths that lead nowhere."""

from typing import Final

from weft.findings import Rule

RULES: Final[tuple[Rule, ...]] = (
    Rule(
        code="FLOW001",
        severity="error",
        title="Setting of a conversation in a flow",
        why=(
            "A workflow is a conversation, a flow or a board. In a flow steps say who works, so "
            "handoffs, a first agent and a number of turns would do nothing."
        ),
        fix="Remove what the finding names, or remove flow.json.",
        example='{"workflow_name": "Review", "initial_agent": "Writer"}    (with flow.json)',
    ),
    Rule(
        code="FLOW002",
        severity="error",
        title="Workflow or step has no name, or one with a slash",
        why=(
            "Runs are found by the name of their workflow, and the journal says by its name which "
            "step was done; there, / separates names. A lambda has no name of its own."
        ),
        fix="Write a name without /; in code, give `name=`.",
        example="Workflow.create('Review', Draft).start_with(lambda state: {'score': 1})",
    ),
    Rule(
        code="FLOW003",
        severity="error",
        title="Flow has no steps",
        why="A run of it ends as soon as it has begun.",
        fix="Add steps: `start_with` in code, `steps` in flow.json.",
        example='{"steps": []}',
    ),
    Rule(
        code="FLOW004",
        severity="error",
        title="Flow is written in an order that means nothing",
        why=(
            "A flow begins with one start_with and is over with finally_; a join follows its fork. "
            "What stands elsewhere would never be done."
        ),
        fix="Call start_with first and once, join right after fork, and finally_ last.",
        example="Workflow.create('Review', Draft).then(write)",
    ),
    Rule(
        code="FLOW005",
        severity="error",
        title="Two parts of a flow have one name",
        why=(
            "The journal, retries and the results of paths are kept by name. Of two parts of one "
            "name, one would be taken for the other."
        ),
        fix="Give one of them another name; in code, `name=`: a step may occur several times.",
        example="Workflow.create('Review', Draft).start_with(write).then(check).then(write)",
    ),
    Rule(
        code="FLOW006",
        severity="error",
        title="Fork without a join",
        why=(
            "The paths of a fork have the state for themselves. Without the step that joins them, "
            "nobody would see what they have done."
        ),
        fix="Call join after fork, or write `join` in the file.",
        example="flow.fork(lambda p: p.then(a), lambda p: p.then(b)).then(publish)",
    ),
    Rule(
        code="FLOW007",
        severity="error",
        title="Fork with fewer than two paths",
        why="One path has nothing to go beside: its steps can stand on the main line.",
        fix="Add a path, or write the steps without the fork.",
        example="flow.fork(lambda p: p.then(check)).join(publish)",
    ),
    Rule(
        code="FLOW008",
        severity="error",
        title="Path of a fork has no steps",
        why="It is over at once, so the join would wait for the other paths alone.",
        fix="Add a step, or remove the path.",
        example="flow.fork(lambda p: p.then(check), lambda p: p).join(publish)",
    ),
    Rule(
        code="FLOW009",
        severity="error",
        title="Loop has no steps",
        why="Nothing changes in it, so its condition would have the same answer each time.",
        fix="Add the steps that are done again.",
        example="flow.repeat_until('score > 3', 'improve', lambda p: p)",
    ),
    Rule(
        code="FLOW010",
        severity="error",
        title="Loop is done less than once",
        why="The steps of a loop are done before its condition is asked, so at least once.",
        fix="Set max_iterations to 1 or more.",
        example='{"kind": "repeat", "name": "improve", "until": "score > 3", "max_iterations": 0}',
    ),
    Rule(
        code="FLOW011",
        severity="error",
        title="Not a step",
        why=(
            "A step, and what undoes it, is a function of the state, a class or an object with "
            "`run(state)`, or an AgentStep. Nothing else can be called."
        ),
        fix=(
            "Give a function with the parameters (state) or (state, context), a class that can be "
            "made without arguments, or an object."
        ),
        example="flow.then('write the draft')",
    ),
    Rule(
        code="FLOW012",
        severity="error",
        title="Confidence out of range",
        why="How sure a result is, is a share from 0 to 1. Beyond, every result or none would do.",
        fix="Write a share such as 0.8.",
        example="flow.then(classify, lambda o: o.require_confidence(80))",
    ),
    Rule(
        code="FLOW013",
        severity="warning",
        title="Low confidence is not handled",
        why=(
            "Without a path for results that are not sure enough, the step fails then, and with it "
            "the run."
        ),
        fix="Say what is done then: on_low_confidence, `confidence.path` in files.",
        example="flow.then(classify, lambda o: o.require_confidence(0.8))",
    ),
    Rule(
        code="FLOW014",
        severity="error",
        title="Step is never tried, or without end",
        why=(
            "The number of attempts counts the first one, and the wait before the second is a "
            "time. More than 1000 attempts, or a year, are no plan."
        ),
        fix="Write 1 to 1000 attempts, and a delay of 0 or more seconds, at most a year.",
        example="flow.then(fetch, lambda o: o.with_retry(0))",
    ),
    Rule(
        code="FLOW015",
        severity="error",
        title="No time to do anything, or more than a year",
        why=(
            "A deadline of no seconds is over before the step, or the person, has begun. One "
            "beyond a year, or that is no number, never comes."
        ),
        fix="Write more than 0 seconds and at most a year (31536000), or leave it out.",
        example="flow.then(fetch, lambda o: o.with_timeout(0))",
    ),
    Rule(
        code="FLOW016",
        severity="warning",
        title="Option has no effect here",
        why="It is read by nothing in this place, so what its author wanted does not happen.",
        fix="Remove it, or add what the finding says is missing.",
        example="flow.then(fetch, lambda o: o.on_failure(lambda p: p.then(tell).complete()))",
    ),
    Rule(
        code="FLOW017",
        severity="error",
        title="Path inside a fork or loop ends the run",
        why=(
            "The other paths of the fork are under way, and the join waits for all of them. The "
            "steps of a loop are done again, unless a branch among them leaves it."
        ),
        fix=(
            "Let the path go on to the join and branch after it. A low-confidence path rejoins "
            "with rejoin_main_flow()."
        ),
        example="flow.fork(lambda p: p.then(a).complete(), lambda p: p.then(b)).join(publish)",
    ),
    Rule(
        code="FLOW018",
        severity="error",
        title="Agent of a step is not declared",
        why="Who an agent is stands in agents.json. Without an entry it has no prompt, no model.",
        fix="Correct the name, or declare the agent: in agents.json, or with .agent() in code.",
        example='{"kind": "agent", "agent": "Wirter"}    (agents.json has Writer)',
    ),
    Rule(
        code="FLOW019",
        severity="error",
        title="State has no such field",
        why=(
            "A selector, a condition or a template asks for a field that the state never has, or "
            "sets one that cannot be set. It would fail, or stay empty, in every run."
        ),
        fix="Correct the name, or add the field to the class of the state.",
        example="c.from_state(lambda s: s.tpic)    (the field is topic)",
    ),
    Rule(
        code="FLOW020",
        severity="error",
        title="Condition cannot be read",
        why=(
            "Branches, loops and guards ask conditions over the state, written as in handoffs, "
            "also of parts: document.score > 3. One that cannot be read would fail every run."
        ),
        fix="Correct the condition where the finding points.",
        example='{"kind": "repeat", "name": "improve", "until": "score = 3"}    (meant is ==)',
    ),
    Rule(
        code="FLOW021",
        severity="error",
        title="Comparison that the types rule out",
        why="The field never has such a value, so the condition has the same answer in every run.",
        fix="Compare with a value that the type of the field allows.",
        example="""flow.repeat_until("score == 'high'", 'improve', lambda p: p.then(write))""",
    ),
    Rule(
        code="FLOW022",
        severity="error",
        title="Branch without cases, or with two for one value",
        why="Without a case there is nothing to choose; of two for one value, one never comes.",
        fix="Write one case for each value that leads somewhere else.",
        example='{"kind": "branch", "name": "by_kind", "on": "kind", "cases": []}',
    ),
    Rule(
        code="FLOW023",
        severity="error",
        title="Case that never comes",
        why="The type of the field rules the value out. A condition is true or false.",
        fix="Write a value that the field can have.",
        example="flow.branch(lambda s: s.kind, {'bil': pay})    (kind is 'bill' or 'offer')",
    ),
    Rule(
        code="FLOW024",
        severity="warning",
        title="Branch leaves a value out",
        why="Where a value has no case, and nothing is said otherwise, the run fails.",
        fix="Add the case, or `otherwise`.",
        example="flow.branch(lambda s: s.done, {True: lambda p: p.then(publish)})",
    ),
    Rule(
        code="FLOW025",
        severity="error",
        title="Approval cannot be given",
        why=(
            "A person chooses one of the options. Without one that lets the flow go on, or with a "
            "default that is none of them, there is no answer that counts."
        ),
        fix="Give options with different names, one of which does not reject.",
        example="flow.await_approval('manager', lambda a: a.default('yes'))",
    ),
    Rule(
        code="FLOW026",
        severity="error",
        title="Approval is asked of nobody",
        why="Only a user, a role or a group can find the question; others never see it.",
        fix="Write user:NAME, role:NAME or group:NAME. In code, a name alone is a role.",
        example='{"kind": "approval", "name": "pay", "approver": "manager"}',
    ),
    Rule(
        code="FLOW027",
        severity="error",
        title="Retrieval cannot be made",
        why=(
            "Passages are found by one query: a text, or a field of the state. At least one is "
            "asked for, and relevance is a share from 0 to 1. Of two filters by one key, only "
            "one would count."
        ),
        fix=(
            "Write query or query_path, top_k of 1 or more, min_relevance from 0 to 1, and each "
            "key of a filter once."
        ),
        example="c.from_retrieval('Library', lambda r: r.top_k(0))",
    ),
    Rule(
        code="FLOW028",
        severity="error",
        title="Source of a context is not there, or not shown",
        why="A step would be shown nothing of what its author wanted it to know.",
        fix=(
            "Correct the name of the variable, name a workflow that has a board, or write "
            "{context} into the template."
        ),
        example="c.from_variable('custmer')    (the variable is customer)",
    ),
    Rule(
        code="FLOW029",
        severity="warning",
        title="Reply changes nothing",
        why=(
            "A structured reply sets the fields that are called like its own. With none of them in "
            "the state, and for free text, `output` must say which field gets it."
        ),
        fix="Name the field under output.",
        example='{"kind": "agent", "agent": "Writer", "prompt": "Write about {topic}."}',
    ),
    Rule(
        code="FLOW030",
        severity="warning",
        title="Agent does no step",
        why="In a flow, agents work when their step comes. One without a step never does.",
        fix="Let it do a step, or remove it.",
        example='agents.json: [{"agent_name": "Writer"}]    (and no step is done by Writer)',
    ),
    Rule(
        code="FLOW031",
        severity="error",
        title="Code of a flow cannot be found",
        why=(
            "Functions, classes of steps and the class of the state are named as module:name. The "
            "package has no such file, or the file does not define the name. Of a module that is "
            "meant to be installed it is a warning: it may be where the package runs."
        ),
        fix="Correct the reference: tools.steps:write is write in tools/steps.py.",
        example='{"kind": "function", "function": "tools.steps:wirte"}',
    ),
    Rule(
        code="FLOW032",
        severity="error",
        title="Package names an object that only a program has",
        why=(
            "local:NAME stands for an object of the program that defines a workflow in code. Files "
            "have no such program, so nothing could be called."
        ),
        fix="Move the code into a file of the package and name it as module:name.",
        example='{"kind": "function", "function": "local:write"}',
    ),
    Rule(
        code="FLOW033",
        severity="error",
        title="Selector or condition in code cannot be recorded",
        why=(
            "It is called once, when the flow is built, with an object that notes which fields are "
            "asked for. Python decides `and`, `or`, `not`, `in` and f-strings at once, and calls "
            "have no result yet: nothing of it would be left when the flow runs."
        ),
        fix=(
            "Ask for fields and compare them; write & | ~ and .in_() with parentheses around each "
            "comparison. What needs more is a step of its own, or a condition as text."
        ),
        example="flow.branch(lambda s: s.total > 10 and s.paid, {...})    (meant is &)",
    ),
    Rule(
        code="FLOW034",
        severity="error",
        title="Builder of flows was given something else",
        why=(
            "The state is a pydantic class whose fields can be written as JSON, a path is a "
            "function of a builder, and conditions are text or functions of the state."
        ),
        fix="Give what the finding says.",
        example="flow.fork(write, check)    (meant is lambda p: p.then(write))",
    ),
    Rule(
        code="FLOW035",
        severity="error",
        title="What is set does not fit the field",
        why=(
            "A reply is text, or an object of the agent's model; a person's answer is the name of "
            "an option. A field of another type refuses it in every run."
        ),
        fix="Name a field whose type fits, or change the type.",
        example="flow.await_approval('manager', lambda a: a.into(lambda s: s.paid))    (a bool)",
    ),
    Rule(
        code="FLOW036",
        severity="warning",
        title="Step is never reached",
        why="Every path of the branch before it ends the run, so nothing goes on after it.",
        fix="Let one of the paths go on, or remove what follows.",
        example="flow.branch('paid', {True: end, False: end}).then(publish)    (end completes)",
    ),
)
