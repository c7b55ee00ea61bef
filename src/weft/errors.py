"""Every exception Weft raises.

```
WeftError
├── DeclarationError   the author must act; carries findings
│   ├── PackageError   files that cannot be read or written as asked
│   └── CheckFailed    a package that does not check clean
├── ExpressionError    a condition or type that does not parse, or that cannot be evaluated
└── UsageError         a request that cannot be carried out as it was made
```
"""

from weft.findings import Finding


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
    """A package has findings of severity error."""


class ExpressionError(WeftError):
    """Text of a condition or a type is wrong at `offset` (0-based) into it."""

    def __init__(self, message: str, *, offset: int = 0, hint: str | None = None) -> None:
        super().__init__(message)
        self.offset = offset
        self.hint = hint


class UsageError(WeftError):
    """A request cannot be carried out as it was made; `hint` says what to do instead."""

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint
