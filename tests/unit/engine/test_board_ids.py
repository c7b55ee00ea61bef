"""What things on a board are called: after everything that makes them others, and nothing else."""

import re

from weft.engine.board.publishing import activation_name, product_name, tick_name, timer_name
from weft.engine.board.state import Artifact


def artifacts(*ids, correlation="c"):
    return [Artifact(id_, "Note", {}, "user:ada", (), "", correlation, 0) for id_ in ids]


def test_names_are_short_and_always_the_same():
    name = activation_name("c", "Ann.0", artifacts("a", "b"))
    assert name == activation_name("c", "Ann.0", tuple(artifacts("a", "b")), 0)
    assert name == "42a5cc4609d6e804d48c30ca3b9f9054", "journals have it: it may not change"
    assert re.fullmatch("[0-9a-f]{32}", product_name(name, "c", {"kind": "public"}, 0))
    assert re.fullmatch("[0-9a-f]{32}", tick_name("c", 1))


def test_whatever_differs_is_called_differently():
    public, private = {"kind": "public"}, {"kind": "private", "agents": ["a"]}
    names = [
        activation_name("c", "Ann.0", artifacts("a")),
        activation_name("d", "Ann.0", artifacts("a")),
        activation_name("c", "Ann.1", artifacts("a")),
        activation_name("c", "Ann.0", artifacts("b")),
        activation_name("c", "Ann.0", artifacts("a", correlation="d")),
        activation_name("c", "Ann.0", artifacts("a", "b")),
        activation_name("c", "Ann.0", artifacts("b", "a")),
        activation_name("c", "Ann.0", artifacts("ab")),
        activation_name("c", "Ann.0", artifacts()),
        activation_name("c", "Ann.0", artifacts("a"), 1),
        activation_name("cA", "nn.0", artifacts("a")),
        product_name("x", "c", public, 0),
        product_name("x", "c", public, 1),
        product_name("x", "c", private, 0),
        product_name("x", "d", public, 0),
        product_name("y", "c", public, 0),
        tick_name("c", 1),
        tick_name("c", 2),
        tick_name("d", 1),
    ]
    assert len(set(names)) == len(names)


def test_timers_of_one_time_fire_in_the_order_they_were_set_in():
    names = [timer_name("defer", seq) for seq in (9, 10, 99, 100, 123_456_789)]
    assert sorted(names) == names
