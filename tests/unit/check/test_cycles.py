from hypothesis import given, settings
from hypothesis import strategies as st

from weft.check.subject import find_cycles


def test_cycles_start_where_they_are_met_first():
    graph = {"a": ["b"], "b": ["c", "d"], "c": ["b"], "d": ["d"], "e": ["nowhere", "a"]}
    assert list(find_cycles(graph)) == [("b", "c"), ("d",)]


def test_long_chains_need_no_stack():
    graph = {str(index): [str(index + 1)] for index in range(5000)}
    assert list(find_cycles(graph)) == []
    ((first, *rest),) = find_cycles({**graph, "5000": ["0"]})
    assert (first, len(rest)) == ("0", 5000)


nodes = st.sampled_from("abcdef")


@settings(deadline=None)
@given(st.dictionaries(nodes, st.lists(nodes, max_size=4), max_size=6))
def test_cycles_are_real_share_no_node_and_break_all_others(graph):
    cycles = list(find_cycles(graph))
    for cycle in cycles:
        for node, after in zip(cycle, (*cycle[1:], cycle[0]), strict=True):
            assert after in graph[node]
    met = [node for cycle in cycles for node in cycle]
    assert len(met) == len(set(met))
    assert is_acyclic({node: after for node, after in graph.items() if node not in met})


def is_acyclic(graph):
    left = dict(graph)
    while left:
        leaves = [node for node, after in left.items() if not left.keys() & set(after)]
        if not leaves:
            return False
        for node in leaves:
            del left[node]
    return True
