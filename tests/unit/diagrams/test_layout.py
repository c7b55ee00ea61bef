import random
from itertools import combinations, pairwise

import pytest

from weft.diagrams import layers
from weft.diagrams.layers import layered, order, ranks, without_cycles
from weft.diagrams.layout import arrange, spread, straighten
from weft.diagrams.svg import lines, text_width


def random_graph(seed):
    chance = random.Random(seed)
    nodes = chance.randint(2, 14)
    pairs = [(a, b) for a in range(nodes) for b in range(nodes) if a != b]
    links = chance.choices(pairs, k=chance.randint(1, 24))
    boxes = [(chance.uniform(20, 200), chance.uniform(20, 90)) for _ in range(nodes)]
    labels = [(chance.uniform(0, 150), chance.uniform(5, 60)) for _ in links]
    return nodes, links, boxes, labels


def apart(one, other):
    """Whether two rectangles, each given by centre and size, do not overlap."""
    return any(
        abs(one[0][axis] - other[0][axis]) >= (one[1][axis] + other[1][axis]) / 2 - 0.01
        for axis in (0, 1)
    )


def test_a_graph_without_cycles_is_left_alone():
    links = [(0, 2), (0, 1), (1, 2)]
    assert without_cycles(3, links) == links


def test_only_links_that_close_a_cycle_are_turned():
    assert without_cycles(4, [(0, 1), (1, 2), (2, 0), (3, 2)]) == [(0, 1), (1, 2), (0, 2), (3, 2)]


def test_a_long_chain_is_no_matter_of_depth():
    links = [(n, n + 1) for n in range(5000)]
    assert without_cycles(5001, links) == links


@pytest.mark.parametrize("seed", range(20))
def test_links_lead_from_lower_to_higher_ranks(seed):
    nodes, links, _, _ = random_graph(seed)
    forward = without_cycles(nodes, links)
    found = ranks(nodes, forward)
    assert all(found[target] - found[source] >= 2 for source, target in forward)
    assert min(found) == 0


def test_a_node_that_nothing_leads_to_stands_next_to_its_target():
    assert ranks(5, [(0, 1), (1, 2), (3, 2)]) == [0, 2, 4, 2, 0]


def test_an_order_without_crossings_is_found():
    # Two crossed pairs: 0-3, 1-2.
    assert order([[0, 1], [2, 3]], [[], [], [1], [0]], [[3], [2], [], []]) in (
        [[0, 1], [3, 2]],
        [[1, 0], [2, 3]],
    )


def test_the_best_order_is_kept_when_crossings_cannot_be_avoided():
    rows = [[0, 1], [2, 3]]
    after = [[2, 3], [2, 3], [], []]
    before = [[], [], [0, 1], [0, 1]]
    assert order(rows, before, after) == rows


def test_items_stand_where_they_are_pulled_as_far_as_there_is_room():
    # 0 pulls 1 and 2, which cannot stand in the same place.
    links = [{1: 1.0, 2: 1.0}, {0: 1.0}, {0: 1.0}, {}]
    centres = spread([[0], [1, 2], [3]], [10, 10, 10, 10], [4, 4, 4, 4], links)
    assert centres[2] - centres[1] == pytest.approx(14)
    assert centres[0] == pytest.approx((centres[1] + centres[2]) / 2, abs=0.1)


def test_chains_are_made_straight_within_their_rows():
    centres = [50.0, 30.0, 90.0, 10.0, 55.0]
    # Item 1 may go as far as to 3, item 2 stands alone, item 4 is in the way of nobody.
    straighten([[0, 1, 2]], [[0], [3, 1, 4], [2]], [10] * 5, [0] * 5, centres)
    assert centres == [50.0, 45.0, 45.0, 10.0, 55.0]


@pytest.mark.parametrize("seed", range(40))
def test_nothing_overlaps_and_everything_is_on_the_page(seed):
    nodes, links, boxes, labels = random_graph(seed)
    layout = arrange(layered(nodes, links), boxes, labels)
    things = [*zip(layout.boxes, boxes, strict=True), *zip(layout.labels, labels, strict=True)]
    assert all(apart(one, other) for one, other in combinations(things, 2))
    for (along, across), (length, width) in things:
        assert along - length / 2 >= -0.01
        assert across - width / 2 >= -0.01
        assert along + length / 2 <= layout.size[0] + 0.01
        assert across + width / 2 <= layout.size[1] + 0.01


@pytest.mark.parametrize("seed", range(40))
def test_links_run_from_box_to_box_straight_through_their_labels(seed):
    nodes, links, boxes, labels = random_graph(seed)
    layout = arrange(layered(nodes, links), boxes, labels)
    for (source, target), track, label in zip(links, layout.tracks, layout.labels, strict=True):
        assert len(track) % 2 == 0
        for box, point in ((source, track[0]), (target, track[-1])):
            centre, size = layout.boxes[box], boxes[box]
            assert abs(point[0] - centre[0]) == pytest.approx(size[0] / 2)
            assert abs(point[1] - centre[1]) <= size[1] / 2
        straight = [pair for number, pair in enumerate(pairwise(track)) if number % 2 == 0]
        assert all(here[1] == there[1] for here, there in straight)
        assert any(
            min(here[0], there[0]) <= label[0] <= max(here[0], there[0]) and here[1] == label[1]
            for here, there in straight
        )


@pytest.mark.parametrize("seed", range(20))
def test_links_run_over_no_box(seed):
    nodes, links, boxes, labels = random_graph(seed)
    layout = arrange(layered(nodes, links), boxes, labels)
    for (source, target), track in zip(links, layout.tracks, strict=True):
        for number, (here, there) in enumerate(pairwise(track)):
            if number % 2 == 0:
                middle = ((here[0] + there[0]) / 2, here[1])
                segment = (middle, (abs(here[0] - there[0]), 0.0))
                assert all(
                    apart(segment, (layout.boxes[box], boxes[box]))
                    for box in range(nodes)
                    if box not in (source, target)
                )


def test_a_label_stands_next_to_the_true_source():
    graph = layered(3, [(0, 1), (1, 2), (2, 0)])
    layout = arrange(graph, [(10.0, 10.0)] * 3, [(5.0, 5.0)] * 3)
    assert graph.turned == (False, False, True)
    # The way back starts at the last box; its label is nearer to that than to the first.
    assert layout.labels[2][0] > layout.boxes[1][0]
    assert layout.tracks[2][0][0] > layout.tracks[2][-1][0]


def test_a_huge_graph_gets_fewer_points(monkeypatch):
    links = [(n, n + 1) for n in range(20)] + [(20, 0), (0, 5)]
    whole = layered(21, links)
    monkeypatch.setattr(layers, "MOST_PASSING", 10)
    sparse = layered(21, links)
    assert len(whole.chains[-2]) == 39
    assert [len(chain) for chain in sparse.chains] == [1] * 20 + [2, 2]
    assert arrange(sparse, [(9.0, 9.0)] * 21, [(0.0, 0.0)] * 22).size[0] > 0


def test_texts_are_measured_by_their_letters():
    assert text_width("", 10) == 0
    assert text_width("il", 10) < text_width("ab", 10) < text_width("MW", 10)
    assert text_width("名", 10) > text_width("é", 10) > text_width("e", 10)
    assert text_width("e\u0301", 10) == text_width("e", 10)


def test_texts_are_broken_to_a_width():
    assert lines("one two three", 30, 10) == ["one two", "three"]
    assert lines("aaaa bbbb cccc dddd eeee ffff", 30, 10, most=2) == ["aaaa", "bbbb ..."]
