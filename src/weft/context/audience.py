"""What users of a workflow see of what is said in a run."""

from collections.abc import Iterable, Iterator, Mapping

from weft.engine.variables.trigger_index import Matches, matcher
from weft.spec.triggers import AgentTextTrigger, Trigger, UserTextTrigger
from weft.spec.variables import DerivedSource, Variable
from weft.spec.workflow import WorkflowSpec


class Audience:
    """Who is heard: agents that users see, and words that are not only a sign to a trigger.

    `user` is whom the run is shown to, `addresses` the roles and groups they have: what others are
    asked, and answer, is not theirs to read.
    On a board nobody is heard: what a model says there is an artifact, which only agents may see.
    Nor in a flow: there it becomes a value of the state.
    """

    def __init__(self, spec: WorkflowSpec, user: str = "", addresses: Iterable[str] = ()) -> None:
        self.user = user
        self._addresses = frozenset({"", f"user:{user}", *addresses})
        self._is_silent = spec.board is not None or spec.flow is not None
        self._visible = spec.orchestrator.visual_agents
        self._signs: dict[str, list[Matches]] = {}
        self._own_signs: list[Matches] = []
        for trigger in _triggers(spec.variables):
            if isinstance(trigger, AgentTextTrigger) and trigger.ui_hidden:
                self._signs.setdefault(trigger.agent, []).append(matcher(trigger.match))
            elif isinstance(trigger, UserTextTrigger) and trigger.ui_hidden:
                self._own_signs.append(matcher(trigger.match))

    def hears(self, agent: str, text: str) -> bool:
        """Tell whether users see what an agent has said."""
        return self._speaks(agent) and not _matches_any(self._signs.get(agent, ()), text)

    def sees_while_streaming(self, agent: str) -> bool:
        """Tell whether users see the words of an agent whatever they turn out to be."""
        return self._speaks(agent) and agent not in self._signs

    def _speaks(self, agent: str) -> bool:
        return not self._is_silent and self.sees_agent(agent)

    def sees_agent(self, agent: str) -> bool:
        """Tell whether users see an agent at all."""
        return self._visible is None or agent in self._visible

    def is_addressed(self, addressee: str) -> bool:
        """Tell whether a question is for this user; without an addressee, it is."""
        return addressee in self._addresses

    def sees_user_text(self, text: str) -> bool:
        """Tell whether users see what one of them has said."""
        return not _matches_any(self._own_signs, text)


def _matches_any(signs: Iterable[Matches], text: str) -> bool:
    return any(matches(text) for matches in signs)


def _triggers(variables: Mapping[str, Variable]) -> Iterator[Trigger]:
    for variable in variables.values():
        source = variable.source
        if isinstance(source, DerivedSource):
            yield from source.triggers
            yield from (step.trigger for step in source.transitions if step.trigger is not None)
