"""Flows."""

from typing import Final

ENTRIES: Final = r"""
FLOW001 error: Conversation setting in a flow
  why: A workflow is a conversation, a flow or a board. In a flow steps decide who works, so
    handoffs, an initial agent and max_turns have no effect.
  fix: Remove what the finding names, or remove flow.json.
  example: {"workflow_name": "Review", "initial_agent": "Writer"}    (with flow.json)

FLOW002 error: Missing step name
  why: Runs are found by the workflow name, and the journal identifies steps by name. A lambda has
    no name.
  fix: Write a name; in code use `name=`.
  example: Workflow.create('Review', Draft).start_with(lambda state: {'score': 1})

FLOW003 error: Empty flow
  why: A run ends as soon as it has started.
  fix: Add steps: `start_with` in code, "steps" in flow.json.
  example: {"steps": []}

FLOW004 error: Invalid order of builder calls
  why: A flow starts with one start_with and ends with finally_; join follows its fork.
  fix: Call start_with first and once, join right after fork, and finally_ last.
  example: Workflow.create('Review', Draft).then(write)

FLOW006 error: Fork without a join
  why: The paths of a fork work on their own copies of the state. Without a join their results are
    lost.
  fix: Call join after fork, or write "join" in the file.
  example: flow.fork(lambda p: p.then(a), lambda p: p.then(b)).then(publish)

FLOW011 error: Not a step
  why: A step is a function of the state, a class or object with `run(state)`, or an AgentStep.
  fix: Pass a function with the parameters (state) or (state, context), a class without
    constructor arguments, or an object.
  example: flow.then('write the draft')

FLOW013 warning: Low confidence is not handled
  why: Without a path for low confidence the step fails, and the run with it.
  fix: Add on_low_confidence, or "confidence.path" in the file.
  example: flow.then(classify, lambda o: o.require_confidence(0.8))

FLOW016 warning: Option has no effect
  why: Nothing reads the option in this place.
  fix: Remove it, or add what the finding says is missing.
  example: flow.then(fetch, lambda o: o.on_failure(lambda p: p.then(tell).complete()))

FLOW017 error: Path inside a fork or loop ends the run
  why: The other paths of a fork are still running, and a loop repeats its steps.
  fix: Let the path continue to the join and branch after it. A low-confidence path continues with
    rejoin_main_flow().
  example: flow.fork(lambda p: p.then(a).complete(), lambda p: p.then(b)).join(publish)

FLOW019 error: Field cannot be used here
  why: Contexts read fields of the state, that is derived variables. A step sets whole fields, and
    a template inserts whole fields, not parts of them.
  fix: Use a field of the state, or set a whole field. A function as a step can set parts.
  example: work.output: "letter.title"    (set letter)

FLOW024 warning: Branch does not cover every value
  why: A value without a case makes the run fail, unless "otherwise" is given.
  fix: Add the case, or "otherwise".
  example: flow.branch(lambda s: s.done, {True: lambda p: p.then(publish)})

FLOW025 error: Approval cannot be given
  why: A person chooses one of the options, and at least one must let the flow continue.
  fix: Add an option that does not reject, or leave "options" out.
  example: flow.await_approval('manager', lambda a: a.option('no', rejects=True))

FLOW028 error: Context source is not available
  why: The step would not see what it should: the named board is the flow itself, or the template
    has no place for the context.
  fix: Name a workflow that is a board, or write {context} in the template.
  example: c.from_variable('custmer')    (the variable is customer)

FLOW029 warning: Reply changes nothing
  why: A structured reply sets the fields of the state with the same names. No field matches, or
    the reply is free text.
  fix: Name the field in "output".
  example: {"kind": "agent", "agent": "Writer", "prompt": "Write about {topic}."}

FLOW033 error: Selector cannot be recorded
  why: A selector or condition is called once, when the flow is built, with an object that records
    fields. Python evaluates `and`, `or`, `not`, `in`, f-strings and calls at once, so nothing of
    them would be recorded.
  fix: Read fields and compare them; use & | ~ and .in_() with parentheses around each comparison.
    For more, write a step or a condition as text.
  example: flow.branch(lambda s: s.total > 10 and s.paid, {...})    (meant is &)

FLOW034 error: Invalid argument of a builder
  why: The state is a pydantic class whose fields can be written as JSON, a path is a function of
    a builder, and a condition is a text or a function of the state.
  fix: Pass what the finding says.
  example: flow.fork(write, check)    (meant is lambda p: p.then(write))

FLOW035 error: Result does not fit the field
  why: A reply is a text or an object of the agent's model; an answer is the name of an option.
    The type of the field refuses it in every run.
  fix: Name a field whose type fits, or change the type.
  example: flow.await_approval('manager', lambda a: a.into(lambda s: s.paid))    (a bool)

FLOW036 warning: Step is unreachable
  why: Every path of the branch before it ends the run.
  fix: Let one of the paths continue, or remove what follows.
  example: flow.branch('paid', {True: end, False: end}).then(publish)    (end completes)
"""
