"""What things on a board are called: after everything that makes them others, and nothing else."""

import re

from weft.engine.board_ids import activation_name, product_name, tick_name, timer_name


def test_names_are_short_and_always_the_same():
    name = activation_name("c", "Ann.0", ["a", "b"])
    assert name == activation_name("c", "Ann.0", ("a", "b"), 0)
    assert name == "b886fec1e01b249f591473a599000a84", "journals have it: it may not change"
    assert re.fullmatch("[0-9a-f]{32}", product_name(name, "c", {"kind": "public"}, 0))
    assert re.fullmatch("[0-9a-f]{32}", tick_name("c", 1))


def test_whatever_differs_is_called_differently():
    public, private = {"kind": "public"}, {"kind": "private", "agents": ["a"]}
    names = [
        activation_name("c", "Ann.0", ["a"]),
        activation_name("d", "Ann.0", ["a"]),
        activation_name("c", "Ann.1", ["a"]),
        activation_name("c", "Ann.0", ["b"]),
        activation_name("c", "Ann.0", ["a", "b"]),
        activation_name("c", "Ann.0", ["b", "a"]),
        activation_name("c", "Ann.0", ["ab"]),
        activation_name("c", "Ann.0", []),
        activation_name("c", "Ann.0", ["a"], 1),
        activation_name("cA", "nn.0", ["a"]),
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
