"""Files, packs, linking and generated packages."""

from typing import Final

ENTRIES: Final = r"""
SCHEMA001 error: Unreadable file
  why: A package file must be a regular file inside its folder, readable, at most 2 MiB long, and
    UTF-8 text without control characters.
  fix: Save the file as UTF-8. Replace a link that leads out of the folder by a copy. Move large
    data to a data file.
  example: tools.json saved as UTF-16 by an editor, or tools.json -> /srv/common/tools.json

SCHEMA002 error: Invalid JSON or YAML
  why: The file cannot be parsed, so nothing in it is used.
  fix: Go to the line and column of the finding. Usual causes: a missing comma, an unclosed quote
    or bracket, single quotes in JSON, a tab or wrong indentation in YAML.
  example: {"name": "Router" "model": "default"}    (a comma is missing before "model")

SCHEMA003 error: Duplicate key
  why: An object has the same key twice. Most parsers keep the last value and silently drop the
    first.
  fix: Keep one of the two entries, or rename one.
  example: {"max_turns": 20, "human_in_the_loop": true, "max_turns": 50}

SCHEMA004 error: Limit exceeded
  why: A file may nest 100 levels and hold 100,000 values, YAML aliases expanded. Integers must
    fit in 64 bits, and other numbers must be finite.
  fix: Flatten or split the structure. Write a number that is an identifier as text in quotes.
  example: {"account": 123456789012345678901234567890}

SCHEMA005 error: Unsupported YAML feature
  why: Every file may be JSON or YAML and must mean the same in both. Tags, merge keys, keys that
    are not text and several documents have no equivalent in JSON.
  fix: Remove the tag, write merged entries out, put a key such as 1 or true in quotes, and keep
    one document per file. Anchors and aliases are allowed.
  example: 1: first      write it as "1": first

SCHEMA006 warning: JSON with comments or trailing commas
  why: Weft reads such a file, but other programs refuse it, and the comments are lost when Weft
    rewrites the file.
  fix: Remove the comments and trailing commas, or save the file as YAML.
  example: {"max_turns": 20,  // enough for one visit
    }

SCHEMA007 error: Invalid value
  why: The value has the wrong type or form, is out of range, or is not one of the allowed words;
    or a list is too short. Weft does not convert values.
  fix: Write a value as the message says. `weft schema NAME` prints what every key takes.
  example: {"workflow_name": "Support", "initial_agent": "Router", "max_turns": "thirty"}

SCHEMA008 error: Unknown key
  why: The key has no meaning here. A misspelt key would leave the intended setting at its
    default.
  fix: Correct the spelling as the hint suggests, or remove the key.
  example: {"agents": [{"agent_name": "Router", "promt_sections": []}]}

SCHEMA009 error: Missing key
  why: The key is required and has no default.
  fix: Add the key that the message names.
  example: {"handoff_rules": [{"source_agent": "Router"}]}   target_agent is missing

SCHEMA010 warning: Deprecated spelling
  why: Weft reads older spellings, but a package that mixes them is hard to read and to search.
  fix: Run `weft migrate`: it rewrites the package and lists the changes.
  example: "source": {"type": "config", "env_var": "TIER", "default_value": "free"}

SCHEMA011 error: Two files for one purpose
  why: With agents.json and agents.yaml side by side it is not clear which one counts, so neither
    is read.
  fix: Keep one of them.
  example: agents.json and agents.yaml in one package folder

SCHEMA012 error: Missing file
  why: A package needs orchestrator and agents files.
  fix: Add the file. `weft new NAME --pattern N` creates a complete package.
  example: a folder with agents.json but without orchestrator.json

SCHEMA013 error: File is not read
  why: The name is similar to that of a package file, but is not one, so its content has no
    effect.
  fix: Rename the file as the hint suggests, or move it elsewhere.
  example: agent.json next to orchestrator.json

SCHEMA014 error: Keys that require or exclude each other
  why: Of some keys exactly one is needed, because none would leave something open and two would
    contradict each other. Other keys have an effect only together with another one.
  fix: Add or remove the key that the finding names. The message says what it is needed for.
  example: {"types": ["Story", "Check"], "join": {"by": "headline", "function": "tools.desk:key"}}

SCHEMA015 error: Invalid archive
  why: An archive is accepted only if every file is listed in its manifest with the right sha256,
    has a portable name inside the package, and the whole has at most 64 MiB and 2,000 files.
    Otherwise nothing is written.
  fix: Get the archive again, or create it with `weft export NAME`. Do not repack it by hand. If
    export refuses a name, rename the file.
  example: a zip file with an entry ../../start.py, or one without manifest.json

PACK001 error: Unknown required workflow
  why: A run starts only after its required workflows have been run. One that is not in the
    workspace can never be run.
  fix: Correct the name, add the workflow to the workspace, or remove the requirement.
  example: "workflow_dependencies": {"required_workflows": ["CustomerOnbording"]}

PACK002 error: Circular requirement
  why: Each of these workflows waits for the next one, so none can ever start.
  fix: Remove one of the requirements.
  example: Billing:    "required_workflows": ["Onboarding"]
    Onboarding: "required_workflows": ["Billing"]

PACK003 error: Unknown workflow in a pack
  why: The pack would offer a workflow that cannot be run.
  fix: Correct the name, add the workflow to the workspace, or remove it from the pack.
  example: "workflows": [{"name": "Bilingg", "role": "primary"}]

PACK004 error: Pack without exactly one primary workflow
  why: The primary workflow is the one that users start with.
  fix: Give exactly one workflow of the pack the role "primary".
  example: "workflows": [{"name": "Billing", "role": "primary"}, {"name": "Support",
    "role": "primary"}]

PACK005 error: Journey leaves its pack
  why: A journey leads through the workflows of its pack. Another workflow is missing where the
    pack is installed.
  fix: Correct the name, or add the workflow to the pack.
  example: "workflows": [{"name": "Onboarding", "role": "primary"}],
    "journeys": [{"name": "first week", "steps": [["Onboarding"], ["Billing"]]}]

PACK006 warning: Package or file is not checked
  why: Packages are expected in the folder `workflows`, one folder each. What is elsewhere in the
    workspace is skipped.
  fix: Move or rename it as the hint says, or check it by its path.
  example: a package in ./Billing, beside ./workflows/Support

TEST001 error: Scenario failed
  why: A run of the package went otherwise than a file in `tests` says: another route, value,
    question or outcome, a text that is shown or not, an answer that is refused or not.
  fix: Correct the package; or the expectation, if the package is right.
  example: expect: {outcome: completed}    (the run waits for a person)

LINK001 error: Code cannot be imported
  why: A file raises an error while it is imported, or needs a library that is not installed.
    Checking does not run code, so this is found when a run starts.
  fix: Install the library where Weft runs, or correct the line of the finding.
  example: import some_library        which is not installed

LINK002 error: Tool parameter without a JSON type
  why: The description of a tool is made from the types of its parameters. A type that JSON cannot
    express has no description.
  fix: Use str, int, float, bool, list, dict, Literal, Enum, TypedDict, dataclasses or pydantic
    models, and `context_variables` for the variables.
  example: def send(message: Connection) -> str: ...

LINK003 error: Unsupported feature
  why: The workflow declares a feature that this version, or this mode, does not support. A run
    that ignored it would behave differently from the declaration, so it does not start.
  fix: Remove the declaration, or use a version that supports it. A trigger of the type x:NAME
    needs the plug-in that adds it.
  example: "budgets": [{"level": "run", "tokens": 100000}]

LINK004 error: Object is not available here
  why: A flow or board refers to a function or class as module:name, or as local:NAME in the
    program that defines it. This process has no such object. `weft runs show`, `weft inspect` and
    `weft replay` work all the same.
  fix: Install the module, correct the name, or move the code into the package. A module beside a
    script is found with PYTHONPATH=FOLDER. For local:NAME open the journal in the program:
    open_flow(flow, journal=FILE), then host.recover().
  example: "function": "newsroom.checks:check_facts"    (newsroom is not installed here)

GEN001 error: Simulated run failed
  why: A generated package is run with a simulated model, simulated users, and stand-ins for its
    tools. One of these runs failed or did not end within its turns.
  fix: Correct the handoff or tool that the finding names.
  example: a run did not end within its 20 turns

GEN002 error: Declaration never reached in simulation
  why: The explorer shows that runs can get there, but none of the simulated runs did: the
    condition never becomes true. It is a warning where a workflow is too large to be covered.
  fix: Correct the trigger of the variable that the condition tests, or remove the handoff.
  example: no simulated run took WriterAgent -> EditorAgent when draft_ready

GEN003 warning: Library is not installed
  why: A tool imports the library, so the package runs only where it is installed.
  fix: Install it where Weft runs: pip install -r requirements.txt
  example: requirements.txt: stripe

GEN004 error: Generated package uses code outside itself
  why: Installed code and tool servers would run without review while the package is generated.
  fix: Write the tool as a file of the package.
  example: {"agent": "Clerk", "file": "python:shutil", "function": "rmtree"}

GEN005 error: Part of a generated package is missing
  why: An agent of the Generator returned no usable output for this workflow.
  fix: Return the whole part. Where a plan has several workflows, `more` has those of the others.
  example: HandoffsAgent has no output for Billing

GEN006 error: Generated code is refused
  why: Code that a model wrote is read and must use only what is listed. This file cannot be left
    out, because the package depends on it.
  fix: Write the file as the message says. The format card lists the rules.
  example: hooks/privacy.py is refused: it imports os, which is not allowed

GEN007 error: Form or plan is refused
  why: What a form or an edited plan says is not complete, or one part contradicts another.
  fix: Correct the line that the finding names.
  example: outcomes: {done: Reviw}    (there is no step Reviw)

GEN010 error: Element of the plan is missing
  why: The approved plan has an agent, tool, hook, variable, field or outcome that the package
    lacks.
  fix: Add it under the name that the plan uses.
  example: IntakeAgent has no tool look_up_medication

GEN011 error: Another person is asked than planned
  why: A question is for the people in `for`; without it, for the user of the run. On a server,
    developers can answer in their place.
  fix: Declare a UI tool whose `for` is the approver of the plan.
  example: approve_invoice asks the user of the run; the plan says role:finance_manager

GEN012 error: Data differs from the plan
  why: The plan says how a document is found, who shares it, and what is in it. Another key mixes
    cases of different people, or finds nothing.
  fix: Use the source, key, collection and fields of the plan.
  example: intake_record is found by user_id; the plan says chat_id

GEN013 error: Outcome leads elsewhere than planned
  why: The plan says what follows after each outcome. No rule of the agent does that.
  fix: Add or correct the handoff rule, with the condition of the plan.
  example: RedFlagAgent does not lead to Doctor Alert when it comes to present

GEN014 error: User is not told
  why: Only messages of agents in visual_agents, and the `tell` of a UI tool, reach the user.
  fix: Show the agent, or say the text in `tell` or in the greeting.
  example: NoticeAgent must tell the user and is not in visual_agents

GEN015 error: Start differs from the plan
  why: The run would start at another time, by another event, or without the planned fields.
  fix: Use the trigger of the plan.
  example: cron of the start is 0 19 * * *; the plan says 0 7 * * *

GEN016 error: Watched word is not heard
  why: The plan names words of the user that interrupt the work. No trigger matches them, or no
    rule with scope `pre` leads to who takes over.
  fix: Match every word by a user_text trigger, and test its variable in a rule of every agent that
    hears the user.
  example: no trigger matches a message of the user with "chest pain"

GEN017 error: Prompt does not mention a tool
  why: A model calls a tool when its prompt says so. Otherwise the step is likely to be skipped.
  fix: Say in the prompt when to call the tool.
  example: the prompt of IntakeAgent does not mention look_up_medication

GEN018 error: Prompt does not say what must never happen
  why: The plan names what must never happen. An agent that the user sees does not know it.
  fix: Repeat the sentence in the prompt of the agent.
  example: the prompt of IntakeAgent does not say "Never diagnose."

GEN019 error: Code does not do what the plan says
  why: A tool does not read or set the planned data, a hook returns nothing, or a value is set
    before its tool has accepted it.
  fix: Correct the code, or the trigger that the finding names.
  example: InvoiceChecker reads vendors in the plan, and neither its prompt nor its tools do

GEN020 error: Unplanned effect
  why: A service, a collection, an agent, a person or a setting is not in the approved plan.
  fix: Remove it, or have the plan changed.
  example: copy_sent asks Archive, which is not in the plan

GEN021 error: Service is not called as planned
  why: A tool that must change something only reads with GET, or its failure goes unnoticed.
  fix: Use method POST, PUT, PATCH or DELETE, and on_error fail or a tool_failed trigger.
  example: book_payment (Book the payment.) calls Ledger with GET only

GEN022 error: Scenario of the plan differs
  why: A scenario was run with stand-ins for the tools of the package, and did not go as the plan
    expects.
  fix: Correct the package, or the expectation where it depends on what a tool computes.
  example: plan_1: the route differs
"""
