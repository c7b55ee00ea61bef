"""Family PACK: workflows that depend on each other, and packs of workflows."""

from typing import Final

from weft.findings import Rule

RULES: Final[tuple[Rule, ...]] = (
    Rule(
        code="PACK001",
        severity="error",
        title="Required workflow does not exist",
        why=(
            "A run may start only when the required workflows have been run. One that is not in "
            "the workspace can never have been run, so neither can this one."
        ),
        fix="Correct the name, add the workflow to the workspace, or remove the requirement.",
        example='"workflow_dependencies": {"required_workflows": ["CustomerOnbording"]}',
    ),
    Rule(
        code="PACK002",
        severity="error",
        title="Workflows require each other in a circle",
        why="Each of them waits until the next one has been run, so none can ever start.",
        fix="Remove one of the requirements named in the finding.",
        example=(
            'Billing:    "required_workflows": ["Onboarding"]\n'
            'Onboarding: "required_workflows": ["Billing"]'
        ),
    ),
    Rule(
        code="PACK003",
        severity="error",
        title="Pack holds a workflow that does not exist",
        why="The pack would be offered with a part that nobody can run.",
        fix="Correct the name, add the workflow to the workspace, or take it out of the pack.",
        example='"workflows": [{"name": "Bilingg", "role": "primary"}]',
    ),
    Rule(
        code="PACK004",
        severity="error",
        title="Pack has not exactly one primary workflow",
        why="The primary workflow is the one users meet first. None or two leave that open.",
        fix='Give exactly one workflow of the pack the role "primary".',
        example=(
            '"workflows": [{"name": "Billing", "role": "primary"}, '
            '{"name": "Support", "role": "primary"}]'
        ),
    ),
    Rule(
        code="PACK005",
        severity="error",
        title="Journey leaves its pack",
        why=(
            "A journey leads users through the workflows of its pack. One that is not a member is "
            "not there when the pack is installed elsewhere."
        ),
        fix="Correct the name, or add the workflow to the pack.",
        example=(
            '"workflows": [{"name": "Onboarding", "role": "primary"}],\n'
            '"journeys": [{"name": "first week", "steps": [["Onboarding"], ["Billing"]]}]'
        ),
    ),
    Rule(
        code="PACK006",
        severity="warning",
        title="Package or file that is not checked",
        why=(
            "Packages are looked for in the folder `workflows`, one folder for each. What lies "
            "elsewhere in the workspace is passed by, so a report without errors says nothing "
            "about it."
        ),
        fix="Move or rename it as the finding says, or check it by its path.",
        example="a package in ./Billing, beside ./workflows/Support",
    ),
)
