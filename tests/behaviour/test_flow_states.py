"""Classes of states: what they make of their fields counts, and what JSON would lose is refused."""

from dataclasses import dataclass
from typing import Annotated, Any

import pytest
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    Secret,
    SecretBytes,
    SecretStr,
    field_validator,
    model_validator,
)

import weft
from weft.errors import LinkError, UsageError
from weft.flow import Append, Merge, Workflow


def nothing(state):
    return None


def run(step, state):
    flow = Workflow.create("F", type(state)).start_with(step, name="step")
    return weft.run(flow, state)


class Inside(BaseModel):
    model_config = ConfigDict(serialize_by_alias=True)
    short: str = Field("", alias="aVeryLongName")


class Aliased(BaseModel):
    model_config = ConfigDict(serialize_by_alias=True, validate_by_name=True)
    user_name: str = Field("x", alias="userName")
    inside: Inside = Inside()
    got: str = ""


def test_fields_are_kept_by_their_names_whatever_their_aliases_are():
    def step(state: Aliased):
        return {"got": f"{state.user_name} {state.inside.short}"}

    given = Aliased(userName="ada", inside=Inside(aVeryLongName="in"))
    ended = run(step, given)
    assert ended.output == given.model_copy(update={"got": "ada in"})
    assert ended.state.variables["inside"] == {"short": "in"}


def test_a_state_may_be_given_by_aliases_and_by_names():
    flow = Workflow.create("F", Aliased).start_with(nothing)
    for given in ({"userName": "ada"}, {"user_name": "ada"}):
        assert weft.run(flow, given).output.user_name == "ada"


class Sum(BaseModel):
    items: list[int] = []
    total: int = 0
    log: Annotated[list[str], Append] = []
    seen: Annotated[dict[str, int], Merge] = {}

    @field_validator("items")
    @classmethod
    def positive(cls, value: list[int]):
        return [abs(item) for item in value]

    @model_validator(mode="after")
    def sum_up(self):
        total = sum(self.items)
        if total != self.total:
            self.__dict__["total"] = total
            self.__dict__["log"] = [*self.log, f"total {total}"]
            self.__dict__["seen"] = {**self.seen, str(total): len(self.items)}
        return self


@pytest.mark.parametrize(
    "step",
    [
        lambda state: {"items": [5, -6]},
        lambda state: state.model_copy(update={"items": [5, -6]}),
    ],
)
def test_values_set_by_validators_count_for_a_patch_too(step):
    flow = (
        Workflow.create("F", Sum)
        .start_with(step, name="step")
        .branch(
            lambda state: state.total > 10,
            {True: lambda path: path.then(lambda state: {"log": ["big"]}, name="big")},
            otherwise=lambda path: path.then(lambda state: {"log": ["small"]}, name="small"),
        )
    )
    ended = weft.run(flow, Sum(log=["begun"]))
    assert ended.output.log == ["begun", "total 11", "big"]
    assert ended.state.variables["total"] == 11
    assert ended.state.variables["seen"] == {"11": 2}


def test_mutating_the_given_state_does_not_change_the_patch():
    def step(state: Sum):
        state.log.append("lost")
        state.seen["lost"] = 1
        return {"items": [1]}

    ended = run(step, Sum())
    assert ended.output.log == ["total 1"]
    assert ended.output.seen == {"1": 1}


class Tagged(BaseModel):
    tags: set[str] = set()
    left: int = 0
    right: int = 0


def test_unchanged_set_is_not_a_conflict():
    flow = (
        Workflow.create("F", Tagged)
        .start_with(nothing)
        .fork(
            lambda path: path.then(lambda state: {"left": 1}, name="left"),
            lambda path: path.then(lambda state: {"right": 1}, name="right"),
        )
        .join(nothing, name="join")
    )
    tags = {f"word {number}" for number in range(50)}
    assert weft.run(flow, Tagged(tags=tags)).output == Tagged(tags=tags, left=1, right=1)


class Login(BaseModel):
    token: SecretStr = SecretStr("")


@dataclass
class Key:
    key: SecretBytes


class WithSecret(BaseModel):
    token: SecretStr | None = None


class WithSecretInside(BaseModel):
    logins: dict[str, list[Login]] = {}


class WithOtherSecret(BaseModel):
    pin: Secret[int] | None = None


class WithDataclass(BaseModel):
    key: Key | None = None


class WithExcluded(BaseModel):
    name: str = Field("x", exclude=True)


class Tree(BaseModel):
    """Holds itself."""

    name: str = ""
    children: "list[Tree]" = []
    note: str | None = Field(None, exclude=True)


@pytest.mark.parametrize(
    ("kind", "told"),
    [
        (WithSecret, "token is a SecretStr"),
        (WithSecretInside, "logins.token is a SecretStr"),
        (WithOtherSecret, "pin is a Secret"),
        (WithDataclass, "key.key is a SecretBytes"),
        (WithExcluded, "name is excluded from"),
        (Tree, "note is excluded from"),
    ],
)
def test_a_class_with_fields_that_json_would_lose_is_refused(kind: type[BaseModel], told: str):
    with pytest.raises(LinkError, match=told) as caught:
        run(nothing, kind())
    [finding] = caught.value.findings
    assert finding.code == "LINK004"
    assert "leave it out of the state" in finding.hint[0]


class Loose(BaseModel):
    raw: bytes = b""
    share: float = 0
    shares: list[float | None] = []
    whatever: Any = None


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("raw", b"\xff\xfe"),
        ("share", float("nan")),
        ("share", float("inf")),
        ("whatever", object()),
        ("shares", [1.0, float("nan")]),
    ],
)
def test_values_that_no_json_has_are_refused_by_the_name_of_their_field(field, value):
    with pytest.raises(UsageError, match=f"{field} cannot be stored as JSON"):
        run(nothing, Loose(**{field: value}))
    ended = run(lambda state: {field: value}, Loose())
    assert ended.outcome == "failed"
    assert f"{field} cannot be stored as JSON" in ended.reason
