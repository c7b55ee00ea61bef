"""The toolbox: makes the tools of agents, each under a name that no other tool has."""

from collections.abc import Sequence
from typing import Final

from weft.generator.designer.text import plain_line, sentence
from weft.generator.names import snake_case, unique
from weft.spec.plan import PlannedComponent, PlannedTool

#: How many characters the purpose of a tool may have.
_LONGEST: Final = 140


class Toolbox:
    """Knows the names that are taken, and what people see by which tool."""

    def __init__(self, components: Sequence[PlannedComponent]) -> None:
        self._components = components
        self._taken = {it.tool for it in components}

    def make(
        self, words: str, agent: str, purpose: str | None = None, integration: str | None = None
    ) -> PlannedTool:
        """Return a tool named after what it does; after its agent as well where that is taken."""
        plain = " ".join(it for it in words.split() if it not in ("the", "a", "an"))
        name = snake_case(plain, "work")
        if name in self._taken:
            name = snake_case(f"{plain} {agent}", name)
        name = unique(name, self._taken)
        self._taken.add(name)
        return PlannedTool(
            name=name,
            integration=integration,
            purpose=plain_line(sentence(purpose or words), _LONGEST),
            interaction_mode="none",
        )

    def shown_by(self, agent: str, module_name: str) -> list[PlannedTool]:
        """Return the tools by which an agent shows the UI components of a module."""
        return [
            PlannedTool(
                name=it.tool,
                purpose=plain_line(it.summary, _LONGEST),
                interaction_mode=it.display,
            )
            for it in self._components
            if (it.agent, it.module_name) == (agent, module_name)
        ]
