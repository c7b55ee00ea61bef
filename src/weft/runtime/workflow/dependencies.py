"""Dependencies: a workflow that requires others starts after they have been completed."""

from weft.errors import UsageError
from weft.ports.journal import Journal
from weft.ports.scope import Scope
from weft.runtime.workflow import Workflow


async def require_completed(journal: Journal, workflow: Workflow, scope: Scope) -> None:
    """Raise UsageError if the user has not yet completed every workflow that one requires."""
    required = workflow.spec.orchestrator.workflow_dependencies.required_workflows
    if not required:
        return
    completed = await journal.completed(scope, required)
    missing = [name for name in required if name not in completed]
    if missing:
        are = "is" if len(missing) == 1 else "are"
        which = "it is" if len(missing) == 1 else "they are"
        raise UsageError(
            f"{workflow.name} starts after {' and '.join(missing)} {are} completed, "
            f"which {which} not for {scope.user}",
            hint=f"run {'it' if len(missing) == 1 else 'them'} first: "
            + ", ".join(f"weft run {name}" for name in missing),
        )
