"""How a spec refers to objects in code: the right one is found again, or none."""

import functools
import os
import subprocess
import sys
from dataclasses import dataclass
from enum import Enum
from typing import Any

import pytest
from pydantic import BaseModel, SecretStr

from weft.board import Board, FunctionEngine
from weft.dsl.objects import LocalObjects, fingerprint, holds_secret, options_of
from weft.errors import LinkError
from weft.runtime.linked_objects import ObjectMaker


class Kind(Enum):
    A = "a"


class Send:
    def __init__(self) -> None:
        self.calls: list[str] = []

    def run(self, state): ...


class Pay:
    def __init__(self, api_key, rate=1) -> None:
        self.api_key = api_key
        self.rate = rate

    def run(self, state): ...


class Hidden:
    def __init__(self, value) -> None:
        self._value = value

    def run(self, state): ...


@dataclass(frozen=True)
class Fixed:
    size: int = 1

    def run(self, state): ...


class Loose(BaseModel):
    held: Any = None


class Account(BaseModel):
    login: str | SecretStr = ""


def says(value):
    return lambda state: value


def with_default(value):
    def said(state, value=value, *, other=value): ...

    return said


def name(value, label="step", objects=None) -> str:
    return (objects or LocalObjects()).refer(value, label).name


#: Closures of one factory, each with something of another kind.
VALUES = [
    *(
        "a",
        "b",
        1,
        1.0,
        True,
        None,
        b"a",
        (1, 2),
        frozenset({"a", "b"}),
        Kind.A,
        [1],
        [2],
        {"a": 1},
    ),
    *({"a": 2}, {1}, int, os, print, says("x"), says("y"), with_default(1), with_default(2)),
    *(functools.partial(says, 1), functools.partial(says, 2), Fixed(1), Fixed(2), Send().run),
]


@pytest.mark.parametrize("make", [says, with_default])
def test_closure_values_are_part_of_the_name(make):
    names = [name(make(value)) for value in VALUES]
    assert len(set(names)) == len(VALUES)
    assert [name(make(value)) for value in VALUES] == names


def test_objects_without_text_are_distinguished_by_their_label():
    for one, other in ((Hidden(1), Hidden(2)), (says(Hidden(1)), says(Hidden(2)))):
        assert name(one, "a") == name(other, "a")  # Another program may have made it.
        assert name(one, "a") != name(other, "b")


def test_names_do_not_depend_on_the_order_of_objects():
    objects = LocalObjects()
    for value in ([], Hidden(1), 0):
        alone = name(says(value), "ship")
        name(says(value), "new", objects)
        assert name(says(value), "ship", objects) == alone


def test_functions_with_the_same_behaviour_share_a_name():
    objects = LocalObjects()
    plain = [lambda state: {"a": 1} for _ in range(2)]
    assert name(plain[0], "a", objects) == name(plain[1], "b", objects)
    elsewhere = eval("lambda state: {'a': 1}", {})  # with other globals
    assert name(elsewhere, "c", objects) not in (name(plain[0]), name(plain[1]))
    assert len(objects.table) == 2


def test_one_object_keeps_its_names():
    objects = LocalObjects()
    held, method = Hidden(1), Hidden(2)
    assert name(held, "a", objects) == name(held, "a", objects)
    assert name(method.run, "a", objects) == name(method.run, "a", objects)

    class Local: ...

    assert name(Local, "a", objects) == name(Local, "b", objects)
    # Two that cannot be told apart, for one step.
    assert name(Hidden(3), "a", objects) == f"{name(held, 'a', objects)}_2"


def test_functions_that_refer_to_themselves_or_to_what_is_not_there_yet():
    def again(state):
        return again(state)

    def later(state):
        return missing(state)

    assert name(again)
    assert name(later)
    assert not fingerprint(later).certain

    def missing(state): ...

    marked = says(1)
    marked.calls = 3  # type: ignore[attr-defined]
    assert name(marked) != name(says(1))


SEEDED = """
from weft.dsl.objects import LocalObjects
objects = LocalObjects()
def of(held):
    return lambda state: state in {"a", "b", "c", "d"} or [key in {"e", "f", "g"} for key in held]
print(objects.refer(of(frozenset("hijkl"))).name, objects.refer(of({"m", "n", "o"})).name)
"""


def test_names_are_the_same_in_every_process():
    told = {
        subprocess.run(
            [sys.executable, "-c", SEEDED],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(told) == 1


def test_two_objects_of_one_class_stay_two():
    objects = LocalObjects()
    one, other = Send(), Send()
    first, second = objects.refer(one, "a"), objects.refer(other, "b")
    assert first.name.endswith(":Send")
    assert objects.table[second.name] is other
    assert objects.refer(one, "c") == first
    assert objects.refer(Fixed(2), "d") == objects.refer(Fixed(2), "e")  # Equal values are one.


@pytest.mark.parametrize(
    "value",
    [
        Pay("anything"),
        Pay({"deep": ["sk-0123456789abcdefghij"]}),
        Pay(None, rate={"token": "x"}),
        Pay(None, rate=["postgresql://me:word@host/db"]),
        Pay(4711),
        Account(login=SecretStr("x")),
    ],
)
def test_object_with_a_secret_stays_in_its_process(value):
    objects = LocalObjects()
    found = objects.refer(value)
    assert found.name.startswith("local:")
    assert found.options == {}


def test_object_without_secrets_can_be_created_anywhere():
    assert options_of(Pay(None, rate=3)) == {"api_key": None, "rate": 3}
    assert options_of(Pay("", rate=3)) == {"api_key": "", "rate": 3}
    assert options_of(Account(login="ada")) == {"login": "ada"}
    assert not holds_secret("max_tokens", 3)


def test_objects_that_json_cannot_express_stay_in_this_process():
    assert options_of(Loose(held=object())) is None
    assert options_of(Pay(None, rate=object())) is None
    assert options_of(Loose.model_construct(held=3)) == {"held": 3}
    assert options_of(Pay(None, rate=(1, 2))) is None  # A list would come back.


def test_objects_of_different_agents_have_different_names():
    def built(*agents):
        board = Board(name="Shop")
        for agent in agents:
            engine = FunctionEngine(says(Hidden(agent)))
            board.agent(agent).consumes(Account).with_engines(engine)
        found = board.build().board
        assert found
        return {agent.agent: agent.engines[0].function for agent in found.agents}  # type: ignore[union-attr]

    before, after = built("packer", "clerk"), built("new", "clerk", "packer")
    assert before.items() <= after.items()
    assert len(set(after.values())) == 3


def test_a_name_does_not_depend_on_a_secret():
    def keyed(api_key):
        return lambda state: api_key

    assert name(keyed("one"), "a") == name(keyed("other"), "a")
    assert name(keyed("one"), "a") != name(keyed("one"), "b")


def test_constructor_arguments_are_not_shown():
    maker = ObjectMaker({"m:Pay": Pay}, {})
    with pytest.raises(LinkError, match="m:Pay cannot be created with colour: ") as raised:
        maker.instance("m:Pay", {"colour": "ultramarine"})
    assert "ultramarine" not in str(raised.value)
