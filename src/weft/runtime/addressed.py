"""Questions to others than the user of a run: who may answer them, and who comes too late."""

from weft.engine.events import RequestOpened
from weft.engine.state import State
from weft.errors import UsageError
from weft.ports.journal import Journal
from weft.ports.scope import Scope
from weft.runtime.signals import Answer


def refuse_others(state: State, answer: Answer, scope: Scope) -> None:
    """Raise UsageError if an open question is not for those who answer it."""
    asked = state.requests.get(answer.request)
    if asked is not None and not scope.answers(state.app, state.user, asked.addressee):
        raise UsageError(
            f"question {answer.request} is for {asked.addressee}, not for {scope.user}",
            hint=f"answer it as {asked.addressee}",
        )


async def refuse_second(journal: Journal, run: str, answer: Answer, scope: Scope) -> None:
    """Raise UsageError if a question was asked of those who may see nothing else of its run."""
    if not scope.addresses:
        return
    for event in await journal.read(Scope(scope.app), run):
        asked = event.data
        if (
            isinstance(asked, RequestOpened)
            and asked.id == answer.request
            and asked.addressee in scope.addresses
        ):
            raise UsageError(
                f"question {answer.request} is not open any more: it was answered already, or its "
                "time is over"
            ) from None
