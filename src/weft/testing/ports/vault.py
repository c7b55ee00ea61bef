"""The suite every vault must pass; each check needs an empty one."""

from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias

from weft.ports.vault import SecretAnswer, Vault
from weft.testing.store.samples import expect

OpenVault: TypeAlias = Callable[[], Awaitable[Vault]]

RUN: Final = ("shop", "r1")
ANSWER: Final = SecretAnswer({"card": "4111", "notes": ["é", None]}, ("4111", {"pin": 7}))


async def answers_come_back(open_vault: OpenVault) -> None:
    """An answer is returned unchanged, also a second time; a later one replaces it."""
    vault = await open_vault()
    await vault.put(RUN, "r1:3:0", SecretAnswer("first", ()))
    await vault.put(RUN, "r1:3:0", ANSWER)
    await vault.put(RUN, "r1:3:1", SecretAnswer("b", ("b",)))
    wanted = {"r1:3:0": ANSWER, "r1:3:1": SecretAnswer("b", ("b",))}
    expect(await vault.get(RUN, "r1:3:"), wanted, "the answers of a call")
    expect(await vault.get(RUN, "r1:3:"), wanted, "the answers of a call, read again")


async def prefixes_are_exact(open_vault: OpenVault) -> None:
    """A prefix selects the requests of one call: its characters have no other meaning."""
    vault = await open_vault()
    for request in ("r1:3:0", "r1:30:0", "r1:%:0", "r1:_:0", "R1:3:0"):
        await vault.put(RUN, request, ANSWER)
    for prefix, wanted in {"r1:3:": ["r1:3:0"], "r1:%": ["r1:%:0"], "r1:_": ["r1:_:0"]}.items():
        expect(sorted(await vault.get(RUN, prefix)), wanted, f"requests that begin with {prefix}")
    await vault.drop(RUN, "r1:_")
    wanted = ["R1:3:0", "r1:%:0", "r1:30:0", "r1:3:0"]
    expect(sorted(await vault.get(RUN, "")), wanted, "what a drop leaves")


async def runs_are_apart(open_vault: OpenVault) -> None:
    """Neither another tenant nor another run finds or drops an answer."""
    vault = await open_vault()
    await vault.put(RUN, "q", ANSWER)
    for other in (("other", "r1"), ("shop", "r2")):
        expect(await vault.get(other, ""), {}, f"answers of {other}")
        await vault.drop(other)
    expect(await vault.get(RUN, ""), {"q": ANSWER}, "the answer of the run")


async def dropped_answers_are_gone(open_vault: OpenVault) -> None:
    """A dropped answer is gone, and dropping it again does no harm."""
    vault = await open_vault()
    await vault.put(RUN, "r1:3:0", ANSWER)
    await vault.put(RUN, "r1:4:0", ANSWER)
    await vault.drop(RUN, "r1:3:")
    expect(sorted(await vault.get(RUN, "")), ["r1:4:0"], "answers after the call is over")
    await vault.drop(RUN)
    await vault.drop(RUN)
    expect(await vault.get(RUN, ""), {}, "answers after the run has ended")


VAULT_CHECKS: Final = (
    answers_come_back,
    prefixes_are_exact,
    runs_are_apart,
    dropped_answers_are_gone,
)
