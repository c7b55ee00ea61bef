"""Forms: what is refused and where, and the plan that a form describes."""

import pytest

from support.form_play import CLINIC, form
from weft.errors import UsageError
from weft.generator.forms.form import form_plan, read_form
from weft.generator.plans.plan import plan_hash
from weft.generator.plans.rules import plan_faults
from weft.packages.writer import schema_files
from weft.spec.workflow import plain

CLINIC_LINES = CLINIC.splitlines()


def refusal(text: str) -> tuple[str, str | None]:
    with pytest.raises(UsageError) as error:
        read_form("form.yaml", text)
    return str(error.value), error.value.hint


def line_with(text: str) -> int:
    return next(number for number, line in enumerate(CLINIC_LINES, 1) if text in line)


@pytest.mark.parametrize(
    ("before", "after", "message", "hint"),
    [
        ("asks_back", "ask_back", 'unknown key "ask_back"', 'did you mean "asks_back"?'),
        ("never:", "nevr:", 'unknown key "nevr"', 'did you mean "never"?'),
        ("complete: Red Flags", "complete: Red Flag", '"Red Flag" is not there', "Red Flags?"),
        ("shows: [summary]", "shows: [sumary]", "sumary is no variable", "did you mean summary?"),
        ("by: agent", "by: robot", '"robot" is not one of agent, person', "write one of them"),
        ("role:nurse", "nurse", "not a person", None),
        ("taken: end", "taken: done", '"done" is not there', "end"),
        ("none: Summary", "none: ", "nothing follows", "name a step, user or end"),
        ("more: Intake", "too bad: Intake", "neither an outcome nor a condition", "too_bad"),
        ("more: Intake", '"flags > 3": Intake', "unknown value flags", "did you mean flag?"),
        ("more: Intake", "more: [Intake, Summary]", "in parallel lead to one place", "same target"),
        ("{Red Flags: none}", "{Red Flags: no}", "unknown outcome no", "none"),
        ("{Red Flags: none}", "{Red Flag: none}", '"Red Flag" is not there', "Red Flags?"),
        ("[flag]", "[flag: strr]", '"strr" is not a type', "did you mean str?"),
        ("tell: The", 'tell: "{x}", task: The', "unknown field x", "decision"),
        ("name: Intake", "name: user", "user is a target itself", "rename the step"),
        ("name: Summary", "name: Nurse", "two steps are named Nurse", "a name of its own"),
        ("writes: [flag]", "who: role:x", '"who" has no effect', "remove"),
        ("complete: Red Flags", "complete: Intake", "no way leads to an end", "outcome to end"),
        ("done: Nurse", "done: end", "no outcome leads to Nurse", "add one"),
        ("outcomes: {done: Nurse}", "outcomes: {}", "step Summary has no outcomes", "{done: end}"),
        (", outcomes: {done: Nurse}", "", "step Summary has no outcomes", "write outcomes: {done"),
        ("writes: [flag]", "question: Why?", "found text", "write question: {to: user, fields:"),
        ("[{requests: {ask", "[{request: {ask", 'unknown key "request"', '"requests"'),
        ("ask_nurse: role:nurse", "ask_nurse: role:x", "ask_nurse asks role:nurse", "role:nurse"),
        ("{ask_nurse: role", "{ask_nurs: role", "no request ask_nurs", "ask_nurse"),
        ("shown: [The duty", "shown: [1, The duty", "expected text, found 1", "quotes"),
        ("answer: Nurse", "answer: Nurs", "no step that asks Nurs", "Nurse"),
        ("answer: Nurse", "anser: Nurse", 'unknown key "anser"', "answer"),
        ("[Intake, RedFlags, D", "[Intke, RedFlags, D", "no agent Intke", "Intake"),
        ("takes: {Intake: complete, Red Flags: none}, expect", "expects", '"expects"', '"expect"'),
        ("workflow: ClinicIntake", "workflow: clinic", "is not PascalCase", "write Clinic"),
    ],
)
def test_a_mistake_is_refused_with_its_place_and_a_remedy(before, after, message, hint):
    said, remedy = refusal(CLINIC.replace(before, after, 1))
    lines = [line for line in said.splitlines() if message in line]
    assert lines, said
    places = {line_with(before), line_with(before) + 1}
    if before not in ("never:", "name: Summary", "done: Nurse"):
        assert any(int(line.split(":")[1]) in places for line in lines), said
    if hint:
        assert hint in (remedy or "")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("start: schedule", "the start schedule needs its details"),
        ("start: webhook", "a run with this start has no chat"),
        ("key: user_id", '"key" has no effect without "record"'),
        (
            "data: {x: {from: database, key: nobody}}",
            "the key nobody is not the name of a variable or field",
        ),
        ("data: {x: {from: database, url: u}}", "the type is data_reference"),
    ],
)
def test_mistakes_outside_of_the_steps(line, message):
    text = CLINIC.replace("record: IntakeRecords\n", "").replace("never:", f"{line}\nnever:", 1)
    assert message in refusal(text)[0]


def test_the_answers_of_a_form_are_the_extended_plan():
    plan = form_plan(form(CLINIC))
    assert plan_faults(plan) == ()
    assert plan_hash(plan) == plan_hash(form_plan(form(CLINIC)))
    strategy, blueprint = plain(plan.strategy), plain(plan.blueprint)
    assert strategy["watch"] == {"words": ["chest pain", "heavy bleeding"], "to": "Red Flags"}
    assert strategy["never"] == ["Never diagnose."]
    assert [way.to for way in plan.strategy.modules[1].leads_to] == [
        "Doctor Alert", "Summary", "Intake",
    ]  # fmt: skip
    [record] = blueprint["global_context_variables"]
    assert (record["collection"], record["key"]) == ("IntakeRecords", "chat_id")
    assert [field["name"] for field in record["fields"]] == [
        "symptoms", "medication", "flag", "summary",
    ]  # fmt: skip
    people = {each.agent: each.approver for each in plan.blueprint.ui_components}
    assert people == {"DoctorAlert": "role:duty_doctor", "Nurse": "role:nurse"}
    agents = {each.agent_name: each for module in plan.modules for each in module.agents}
    assert agents["Intake"].human_interaction == "context"
    assert agents["RedFlags"].outcomes == ("present", "none", "more")
    assert agents["DoctorAlert"].tell == "The duty doctor has been alerted."


STEP = "{name: Work, by: agent, task: Work., outcomes: {done: end}}"


@pytest.mark.parametrize(
    ("start", "trigger", "initiated_by"),
    [
        ("chat", "chat", "user"),
        ("webhook", "webhook", "external_event"),
        ("{fields: [name, days: int]}", "form_submit", "user"),
        ("{cron: 0 7 * * *}", "schedule", "system"),
        ("{path: a/b, fields: [x]}", "webhook", "external_event"),
        ("{collection: Items, condition: stock < 5}", "database_condition", "system"),
    ],
)
def test_the_start_is_a_word_or_its_details(start, trigger, initiated_by):
    plan = form_plan(form(f"workflow: W\ndescription: D.\nstart: {start}\nsteps: [{STEP}]"))
    strategy = plan.strategy
    assert (strategy.trigger, strategy.initiated_by) == (trigger, initiated_by)
    assert strategy.human_in_loop == (trigger == "chat")


def test_a_wrong_schedule_is_refused_at_the_start():
    said, _ = refusal(f"workflow: W\ndescription: D.\nstart: {{cron: 1 2}}\nsteps: [{STEP}]")
    assert said.startswith("form.yaml:3:")


def test_json_is_read_as_well_and_fields_have_three_spellings():
    fields = '["a", "b: int", {"c": "float"}, {"name": "d", "type": "bool", "description": "D."}]'
    step = f'{{"name": "S", "by": "agent", "task": "T.", "writes": {fields}, '
    step += '"outcomes": {"done": "end"}}'
    made = read_form("x.json", f'{{"workflow": "W", "description": "D.", "steps": [{step}]}}')
    variables = form_plan(made).blueprint.global_context_variables
    assert [(each.name, str(plain(each).get("value_type"))) for each in variables] == [
        ("a", "None"), ("b", "int"), ("c", "float"), ("d", "bool"),
    ]  # fmt: skip


def test_the_form_has_a_schema_for_editors():
    assert '"asks_back"' in schema_files()["form.schema.json"]
