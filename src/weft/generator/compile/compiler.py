"""The compiler: one workflow of a plan through all transformations, in the order of the steps."""

from weft.generator.compile.agents import agents
from weft.generator.compile.handoffs import handoffs
from weft.generator.compile.hooks import hooks
from weft.generator.compile.models import models
from weft.generator.compile.orchestrator import orchestrator
from weft.generator.compile.tools import lifecycle_tools, tool_shapes, tools
from weft.generator.compile.variables import exposure, variables
from weft.generator.compile.wiring import wire
from weft.generator.shapes import ToolShape
from weft.generator.workflow_plan import WorkflowPlan
from weft.spec.workflow import WorkflowSpec


def compile_spec(workflow: WorkflowPlan) -> tuple[WorkflowSpec, tuple[ToolShape, ...]]:
    """Return the spec of a workflow, and the shapes after which its code is written."""
    wiring = wire(workflow)
    shapes = tool_shapes(workflow, wiring)
    lifecycle = lifecycle_tools(workflow, shapes)
    around = hooks(workflow, {*(it.name for it in shapes), *(it.function for it in lifecycle)})
    known = variables(workflow, wiring, shapes, (*lifecycle, *around))
    shown = exposure(workflow, wiring, shapes, known)
    outputs, registry = models(workflow, shapes, known)
    spec = WorkflowSpec(
        tools=tools(workflow, shapes),
        lifecycle_tools=lifecycle,
        variables=known,
        exposure=shown,
        handoffs=handoffs(wiring),
        models=outputs,
        registry=registry,
        agents=agents(workflow, wiring, shapes, known, shown),
        orchestrator=orchestrator(workflow, wiring),
        hooks=around,
    )
    return spec, shapes
