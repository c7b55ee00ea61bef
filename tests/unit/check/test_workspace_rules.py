import time

import pytest

from weft.catalogue import CATALOGUE
from weft.check.workspace import WORKSPACE_RULES, WorkspaceSubject, check_workspace
from weft.findings import Place
from weft.spec.workflow import Pack, WorkflowSpec


def workflow(name, *required):
    return WorkflowSpec.model_validate(
        {
            "orchestrator": {
                "workflow_name": name,
                "initial_agent": "RouterAgent",
                "workflow_dependencies": {"required_workflows": list(required)},
            }
        }
    )


def pack(*members, journeys=()):
    return Pack.model_validate(
        {
            "pack_name": "Shop",
            "workflows": [{"name": name, "role": role} for name, role in members],
            "journeys": [{"name": "Day", "steps": steps} for steps in journeys],
        }
    )


def subject(requirements, **packs):
    workflows = {name: workflow(name, *required) for name, required in requirements.items()}
    return WorkspaceSubject(workflows, {f"{name}.json": found for name, found in packs.items()})


def hits(code, checked):
    return list(WORKSPACE_RULES[code](checked))


def only(code, checked):
    (hit,) = hits(code, checked)
    return hit


REQUIRED = ("orchestrator", "workflow_dependencies", "required_workflows")


def test_every_rule_has_its_entry_in_the_catalogue():
    # PACK006 is about what no rule gets to see: packages that are not where they belong.
    declared = {code for code in CATALOGUE if code.startswith("PACK")} - {"PACK006"}
    assert set(WORKSPACE_RULES) == declared


def test_PACK001_unknown_requirement():
    hit = only("PACK001", subject({"Billing": ["Onboarding", "Onbording"], "Onboarding": []}))
    assert hit.path == ("Billing", *REQUIRED, 1)
    assert hit.message == 'Billing requires unknown workflow "Onbording"'
    assert hit.hint == ('did you mean "Onboarding"?',)


def test_PACK001_nothing_similar():
    assert only("PACK001", subject({"Billing": ["Zzz"]})).hint == (
        "add the workflow to the workspace",
    )


def test_PACK001_known_requirement():
    assert hits("PACK001", subject({"Billing": ["Onboarding"], "Onboarding": []})) == []


def test_PACK002_circle():
    checked = subject({"A": ["B"], "B": ["D", "C"], "C": ["B"], "D": []})
    hit = only("PACK002", checked)
    assert hit.path == ("B", *REQUIRED, 1)
    assert hit.message == "no run of B could ever start: B -> C -> B"


def test_PACK002_workflow_that_requires_itself():
    assert "A -> A" in only("PACK002", subject({"A": ["A"]})).message


def test_PACK002_no_circle():
    assert hits("PACK002", subject({"A": ["B", "C"], "B": ["C"], "C": ["Missing"]})) == []


def test_PACK003_unknown_member():
    shop = pack(("Billing", "primary"), ("Biling", "dependent"))
    hit = only("PACK003", subject({"Billing": []}, shop=shop))
    assert hit.path == ("shop.json", "workflows", 1, "name")
    assert 'the pack Shop has unknown workflow "Biling"' in hit.message
    assert hit.hint == ('did you mean "Billing"?',)


def test_PACK003_nothing_similar():
    hit = only("PACK003", subject({"Billing": []}, shop=pack(("Zzz", "primary"))))
    assert hit.hint == ("add the workflow to the workspace, or take it out of the pack",)


def test_PACK003_known_member():
    assert hits("PACK003", subject({"Billing": []}, shop=pack(("Billing", "primary")))) == []


@pytest.mark.parametrize(
    ("members", "part"),
    [
        ([("A", "dependent")], "has no primary workflow"),
        ([("A", "primary"), ("B", "primary")], "has 2 primary workflows: A, B"),
        ([], "has no primary workflow"),
    ],
)
def test_PACK004_not_one_primary(members, part):
    hit = only("PACK004", subject({}, shop=pack(*members)))
    assert hit.path == ("shop.json", "workflows")
    assert part in hit.message


def test_PACK004_one_primary():
    shop = pack(("A", "primary"), ("B", "dependent"), ("C", "independent"))
    assert hits("PACK004", subject({}, shop=shop)) == []


def test_PACK005_journey_leaves_the_pack():
    shop = pack(("Onboarding", "primary"), journeys=[[["Onboarding"], ["Onboarding", "Onbording"]]])
    hit = only("PACK005", subject({}, shop=shop))
    assert hit.path == ("shop.json", "journeys", 0, "steps", 1, 1)
    assert hit.message == 'the journey Day leads to "Onbording", which is not in the pack Shop'
    assert hit.hint == ('did you mean "Onboarding"?',)


def test_PACK005_nothing_similar():
    hit = only("PACK005", subject({}, shop=pack(("A", "primary"), journeys=[[["Zzz"]]])))
    assert hit.hint == ('add "Zzz" to the workflows of the pack',)


def test_PACK005_journey_inside():
    shop = pack(("A", "primary"), ("B", "dependent"), journeys=[[["A"], ["A", "B"]]])
    assert hits("PACK005", subject({}, shop=shop)) == []


def test_findings_of_a_workspace_are_placed_and_sorted():
    checked = subject({"B": ["Missing"], "A": ["A"]}, shop=pack(("A", "primary")))
    findings = check_workspace(checked, locate=lambda path, **_: Place(str(path[0]), 1, 1))
    assert [(finding.code, finding.place.file) for finding in findings] == [
        ("PACK002", "A"),
        ("PACK001", "B"),
    ]
    assert all(finding.severity == "error" for finding in findings)


def test_workspace_without_a_place_for_its_files():
    (finding,) = check_workspace(subject({"A": ["A"]}))
    assert finding.place.file == "A.orchestrator.workflow_dependencies.required_workflows.0"


def test_many_unknown_names_in_a_large_workspace_stay_quick():
    names = [f"Workflow{index}" for index in range(1000)]
    checked = subject({name: [f"{name.lower()}_"] for name in names})
    before = time.process_time()
    found = hits("PACK001", checked)
    assert len(found) == 1000
    assert 'did you mean "Workflow0"?' in found[0].hint
    assert found[-1].hint == ("add the workflow to the workspace",)
    assert time.process_time() - before < 3
