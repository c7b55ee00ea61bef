"""The boundary around user code that runs on the event loop: models, providers, adapters.

with user_code:
    reply = await model.reply(request)
"""

import asyncio
from types import TracebackType
from typing import Final


class UserCodeStopped(Exception):
    """User code cancelled itself or tried to end the process."""


class _UserCode:
    """Turns what user code raises into an ordinary exception.

    Cancellation that Weft has requested passes, and so does an interrupt from the keyboard.
    """

    __slots__ = ()

    def __enter__(self) -> None:
        pass

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is None or isinstance(error, Exception | KeyboardInterrupt | GeneratorExit):
            return
        if isinstance(error, asyncio.CancelledError):
            task = asyncio.current_task()
            if task is None or task.cancelling():
                return
            raise UserCodeStopped("the code raised CancelledError itself") from error
        if isinstance(error, SystemExit):
            raise UserCodeStopped("the code called sys.exit(); a run cannot end the process")
        raise UserCodeStopped(f"{type(error).__name__}: {error}") from error


#: Stateless, so that one object serves every call.
user_code: Final = _UserCode()
