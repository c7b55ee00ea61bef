"""Mistakes that a type checker must find, one for each line that is marked."""

from typing import Any

from pydantic import BaseModel

import weft
from weft.flow import Workflow, agent, run_flow


class Document(BaseModel):
    summary: str = ""


class Draft(BaseModel):
    topic: str = ""
    document: Document = Document()


class Other(BaseModel):
    name: str = ""


def write(state: Draft) -> dict[str, Any]:
    return {"topic": state.topic}


def write_other(state: Other) -> None: ...


def takes_three(state: Draft, context: Any, more: Any) -> None: ...


class OtherWriter:
    def system_prompt(self) -> str:
        return ""

    def user_prompt(self, state: Other) -> str:
        return state.name


flow = Workflow.create("Review", Draft).start_with(write)

flow.then(write_other)  # error
flow.then(takes_three)  # error
flow.then(OtherWriter())  # error
flow.then("write")  # error
flow.then(write, name=3)  # error
flow.then(lambda state: state.tpic)  # error
flow.then(write, lambda o: o.with_retries(3))  # error
flow.then(write, lambda o: o.with_retry("three"))  # error
flow.then(write, lambda o: o.with_context(lambda c: c.from_state(lambda s: s.tpic)))  # error
flow.then(write, lambda o: o.validate_state(lambda s: s.document.sumary != ""))  # error
flow.then(write, lambda o: o.compensate(write_other))  # error
flow.then(agent("Editor", output=lambda s: s.tpic))  # error
flow.branch(lambda s: s.kind, {"bill": lambda p: p})  # error
flow.branch(lambda s: s.topic, {"bill": lambda p: p.than(write)})  # error
flow.branch(lambda s: s.topic, {"bill": lambda p: p.then(write_other)})  # error
flow.fork(lambda p: p.then(write), lambda p: p.otherwise(write))  # error
flow.repeat_until(lambda s: s.document.score > 3, "improve", lambda p: p.then(write))  # error
flow.await_approval("manager", lambda a: a.into(lambda s: s.decision))  # error
flow.on_failure(lambda p: p.then(write_other))  # error
flow.finally_(write_other)  # error
flow.rejoin_main_flow()  # error
Workflow.create("Review", Draft(topic=""))  # error
Workflow.create("Review", dict)  # error
weft.run(flow, Other())  # error
typo = weft.run(flow, Draft()).output.tpic  # error
typo = weft.run(flow, {"topic": "bees"}).output.tpic  # error
weft.opne_host()  # error


async def run() -> None:
    await run_flow(flow, Other())  # error
    _ = (await run_flow(flow, Draft())).output.tpic  # error
