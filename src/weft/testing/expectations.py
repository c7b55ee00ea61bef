"""How the conformance suites say what is wrong."""

from collections.abc import Awaitable


def expect(actual: object, wanted: object, what: str) -> None:
    """Fail with both values if they differ."""
    if actual != wanted:
        raise AssertionError(f"{what}: expected {_short(wanted)}, found {_short(actual)}")


async def expect_error(kind: type[Exception], attempt: Awaitable[object], what: str) -> None:
    """Fail if an attempt succeeds; another kind of error passes through."""
    try:
        result = await attempt
    except kind:
        return
    raise AssertionError(f"{what}: expected {kind.__name__}, found {_short(result)}")


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 500 else f"{text[:500]}... ({len(text)} characters)"
