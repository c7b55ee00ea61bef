"""Steps of flows: what code is given, and what counts of what it returns."""

from pydantic import BaseModel

from support.flow_play import FlowPlay, derived, step


class Doc(BaseModel):
    text: str = ""
    words: int = 0
    notes: list[str] = []
    scores: dict[str, int] = {}


VARIABLES = {
    "text": derived("str", ""),
    "words": derived("int", 0),
    "notes": derived("list[str]", [], "append"),
    "scores": derived("dict[str, int]", {}, "merge"),
}


def test_a_function_is_given_the_state_and_returns_what_it_changes():
    def count(state: Doc):
        return {"words": len(state.text.split())}

    play = FlowPlay()
    spec = play.spec(step("count", play.function(count)), state=Doc, variables=VARIABLES)
    state = play.run(spec, text="one two three")
    assert state.outcome == "completed", (state.reason, play.events)
    assert state.variables["words"] == 3
