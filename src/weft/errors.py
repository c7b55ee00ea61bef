"""Every exception Weft raises.

```
WeftError
├── DeclarationError   the author must act; carries findings
│   ├── PackageError   files that cannot be read or written as asked
│   ├── CheckFailed    a package that does not check clean
│   └── LinkError      code that is declared and cannot be imported or found
├── ExpressionError    a condition or type that does not parse, or that cannot be evaluated
├── UsageError         a request that cannot be carried out as it was made
│   ├── SetupError     a key, an address or a library is missing on this machine
│   ├── UnknownModel   a model is named that no provider has
│   ├── NotFoundError  what is named does not exist
│   └── ConflictError  it is too late: answered, ended, or there already
├── PortError          the outside world; says whether trying again may help
│   ├── ModelError     a language model gave no usable answer
│   ├── ToolError      a tool gave no result
│   ├── RetrievalError a collection cannot be searched, or a text not be embedded
│   └── StoreError     a store cannot be read or written
│       └── StoreConflict   another process has written in between, or must write first
│           ├── RunOwned         another worker owns the run
│           ├── UnreadMail       mail must be taken before this is written
│           ├── NameTaken        another open run has the name
│           ├── RequestNotOpen   the request was never open, or is not open any more
│           ├── AlreadyAnswered  the request has an answer
│           └── RunHasEnded      the run takes no more mail
├── RunError           this run cannot go on
│   └── ReplayMismatch what was recorded and what would happen now differ
└── AccessDenied       outside the caller's scope

signals a tool may raise (not errors):  RetryModel  Refuse  Ask
```
"""

from typing import Final

from weft.findings import Finding, Json


class WeftError(Exception):
    """Root of all exceptions raised on purpose."""


class DeclarationError(WeftError):
    """The author of a package must act; `findings` says where and how."""

    def __init__(self, message: str, findings: tuple[Finding, ...] = ()) -> None:
        super().__init__(message)
        self.findings = findings


class PackageError(DeclarationError):
    """Package files cannot be read or written as asked."""


class CheckFailed(DeclarationError):
    """A package has findings of severity error; the text has the first three of them."""

    #: How many findings the text has: a log keeps the text alone.
    SHOWN: Final = 3

    def __init__(self, message: str, findings: tuple[Finding, ...] = ()) -> None:
        super().__init__(message, findings)
        #: What cannot be done, without the findings.
        self.message = message

    def __str__(self) -> str:
        """Return the message with the first findings, unless it is that of the only one."""
        if [finding.message for finding in self.findings] == [self.message]:
            return self.message
        shown = [
            f"{finding.place}: {finding.code} {finding.message}"
            for finding in self.findings[: self.SHOWN]
        ]
        if not shown:
            return self.message
        more = len(self.findings) - len(shown)
        return f"{self.message}: {'; '.join(shown)}" + (f" (and {more} more)" if more else "")


class ExpressionError(WeftError):
    """Text of a condition or a type is wrong at `offset` (0-based) into it."""

    def __init__(self, message: str, *, offset: int = 0, hint: str | None = None) -> None:
        super().__init__(message)
        self.offset = offset
        self.hint = hint


class UsageError(WeftError):
    """A request cannot be carried out as it was made; `hint` says what to do instead.

    `findings` has the places of what is wrong in a text that was refused.
    """

    def __init__(
        self, message: str, *, hint: str | None = None, findings: tuple[Finding, ...] = ()
    ) -> None:
        super().__init__(message)
        self.hint = hint
        self.findings = findings
        if hint:
            self.add_note(f"hint: {hint}")  # shown with a traceback


class SetupError(UsageError):
    """Something is missing on this machine: a key, an address, a library; `hint` says what."""


class UnknownModel(UsageError):
    """A model is named that no provider has."""


class NotFoundError(UsageError):
    """What a request names does not exist."""


class ConflictError(UsageError):
    """A request comes too late: something was answered, has ended, or exists already."""


class LinkError(DeclarationError):
    """Declared code cannot be imported or found."""


class PortError(WeftError):
    """Something outside failed; `retryable` says whether trying again may help."""

    def __init__(
        self, message: str, *, retryable: bool = False, after_seconds: float | None = None
    ) -> None:
        super().__init__(message)
        self.retryable = retryable
        self.after_seconds = after_seconds
        #: How often it was tried before this was raised.
        self.attempts = 1


class ModelError(PortError):
    """A language model gave no usable answer."""

    #: The errors of earlier attempts, in order, without those that equal the last one.
    retries: tuple[str, ...] = ()


class ToolError(PortError):
    """A tool gave no result."""


class RetrievalError(PortError):
    """A collection cannot be searched, or a text not be embedded; `hint` says what to do."""

    def __init__(
        self,
        message: str,
        *,
        hint: str | None = None,
        retryable: bool = False,
        after_seconds: float | None = None,
    ) -> None:
        super().__init__(message, retryable=retryable, after_seconds=after_seconds)
        self.hint = hint
        if hint:
            self.add_note(f"hint: {hint}")  # shown with a traceback


class StoreError(PortError):
    """A store cannot be read or written; `uncertain`: it may have been written after all."""

    def __init__(self, message: str, *, retryable: bool = False, uncertain: bool = False) -> None:
        super().__init__(message, retryable=retryable)
        self.uncertain = uncertain


class StoreConflict(StoreError):
    """Another process has written in between; read again and decide again."""


class RunOwned(StoreConflict):
    """Another worker owns the run; it must be reached by mail."""


class UnreadMail(StoreConflict):
    """Mail for the run is unread; take it and decide again."""


class NameTaken(StoreConflict):
    """Another open run of the app has the name."""


class RequestNotOpen(StoreConflict):
    """Mail answers a request that is not open."""


class AlreadyAnswered(StoreConflict):
    """Mail answers a request that has an answer already."""


class RunHasEnded(StoreConflict):
    """Mail is addressed to a run that has ended."""


class RunError(WeftError):
    """A run cannot continue."""


class RunGivenUp(RunError):
    """A run stopped, since it could not be written or read."""

    def __init__(self, run: str, fault: Exception) -> None:
        self.run = run
        advice = f"; {fault.hint}" if isinstance(fault, UsageError) and fault.hint else ""
        self.fact = f"run {run} stopped: {fault}{advice}. Recorded events are safe"
        resume = f"weft runs resume {run}"
        super().__init__(f"{self.fact}. After fixing this, continue with: {resume}")


class ReplayMismatch(RunError):
    """What was recorded and what would happen now differ."""


class AccessDenied(WeftError):
    """Something is outside the caller's scope."""


class RetryModel(Exception):
    """Raised by a tool: the model should call again with other arguments; the text says why."""


class Refuse(Exception):
    """Raised by a tool: it declines to do this; the text says why."""


class Ask(Exception):
    """Raised by a tool: a person must answer first, then the tool is called again.

    It finds the answers it has had, in order, in `context_variables.answers`. After `timeout`
    seconds without an answer `otherwise` is taken for it, or, if it is None, the call fails.
    """

    def __init__(
        self, payload: Json, *, timeout: float | None = None, otherwise: Json = None
    ) -> None:
        super().__init__("a person must answer first")
        self.payload = payload
        self.timeout = timeout
        self.otherwise = otherwise
