"""Which messages of a run its users see."""

from collections.abc import Iterable, Iterator, Mapping

from weft.engine.variables.trigger_index import Matches, matcher
from weft.spec.triggers import AgentTextTrigger, Trigger, UserTextTrigger
from weft.spec.variables import DerivedSource, Variable
from weft.spec.workflow import WorkflowSpec


class Audience:
    """Which messages users see: those of visible agents, unless they only fire a hidden trigger.

    `user` is the reader, `addresses` are their roles and groups: they see neither questions to
    others nor the answers. On a board or in a flow they see no model replies: these become
    artifacts, or values of the state. Who does not take part in the run sees what happens, not what
    is said, and only the questions that name them.
    """

    def __init__(
        self,
        spec: WorkflowSpec,
        user: str = "",
        addresses: Iterable[str] = (),
        *,
        takes_part: bool = True,
    ) -> None:
        self.user = user
        self.takes_part = takes_part
        everyone = ("",) if takes_part else ()
        self._addresses = frozenset({*everyone, f"user:{user}", *addresses})
        self._is_silent = spec.board is not None or spec.flow is not None or not takes_part
        self._visible = spec.orchestrator.visual_agents
        self._signs: dict[str, list[Matches]] = {}
        self._own_signs: list[Matches] = []
        for trigger in _triggers(spec.variables):
            if isinstance(trigger, AgentTextTrigger) and trigger.ui_hidden:
                self._signs.setdefault(trigger.agent, []).append(matcher(trigger.match))
            elif isinstance(trigger, UserTextTrigger) and trigger.ui_hidden:
                self._own_signs.append(matcher(trigger.match))

    def hears(self, agent: str, text: str) -> bool:
        """Return whether users see what an agent said."""
        return self._speaks(agent) and not _matches_any(self._signs.get(agent, ()), text)

    def sees_while_streaming(self, agent: str) -> bool:
        """Return whether users see a message of an agent while it is streamed."""
        return self._speaks(agent) and agent not in self._signs

    def _speaks(self, agent: str) -> bool:
        return not self._is_silent and self.sees_agent(agent)

    def sees_agent(self, agent: str) -> bool:
        """Return whether users see the messages of an agent."""
        return self._visible is None or agent in self._visible

    def is_addressed(self, addressee: str) -> bool:
        """Return whether a question is for this user; without an addressee, it is."""
        return addressee in self._addresses

    def sees_user_text(self, text: str) -> bool:
        """Return whether users see a message of a user."""
        return not _matches_any(self._own_signs, text)


def _matches_any(signs: Iterable[Matches], text: str) -> bool:
    return any(matches(text) for matches in signs)


def _triggers(variables: Mapping[str, Variable]) -> Iterator[Trigger]:
    for variable in variables.values():
        source = variable.source
        if isinstance(source, DerivedSource):
            yield from source.triggers
            yield from (step.trigger for step in source.transitions if step.trigger is not None)
