"""Addressees: who is asked for approval, if it is not the user whose run it is."""

import re
from typing import Final

from weft.generator.compile.texts import mentions, words_of
from weft.generator.workflow_plan import PlannedModule
from weft.spec.plan import PlannedAgent

#: Agents that are named after who approves; a number tells two of one name apart.
_NAMED: Final = re.compile(r"(\w*?)Approval(?:Agent)?\d*\Z")
#: Who is the user: somebody who asks for something.
_USERS: Final = frozenset({"user", "customer", "person", "requester", "human", "applicant"})
_APPROVES: Final = r"(?: (?:to|must|has to|may|will))? (?:approv|decid|sign|accept|confirm)"


def approver_of(agent: PlannedAgent, module: PlannedModule) -> str | None:
    """Return the role that approves the work of an agent; None: the user.

    HeadOfServiceApproval asks the head of service. RefundApproval with the tool approve_refund is
    named after what is approved, unless its words say that a refund approves.
    """
    named = _NAMED.match(agent.agent_name)
    role = words_of(named[1]) if named else ()
    if agent.human_interaction != "approval" or not role or " ".join(role) in _USERS:
        return None
    words = " ".join(role)
    said = " ".join(words_of(f"{agent.objective} {module.description}"))
    things = (module.purpose, *(it.name for it in agent.agent_tools))
    is_thing = any(mentions(it, words) for it in things)
    if is_thing and not re.search(rf"\b{words}{_APPROVES}", said):
        return None
    return f"role:{'_'.join(role)}"
