"""What PostgreSQL binds is among what was checked: the corpus, and some generated statements. run.py beside this runs many."""

import pytest

from tests.oracle.node_tree import nodes, parse
from tests.oracle.run import Tally, compare_corpus, generated


def test_node_trees_are_read() -> None:
    table = '({RTE :alias <> :eref {ALIAS :aliasname a\\ "[ :colnames ("x\\ y" "\\"")} :relid 5})'
    text = "({QUERY :rtable " + table + " :const 4 [ 1 0 ] :oids (o 1 2)})"
    tree = parse(text)
    assert [node["node"] for node in nodes(tree)] == ["QUERY", "RTE", "ALIAS"]
    assert tree[0]["const"] == "4"
    assert tree[0]["oids"] == ["o", "1", "2"]
    assert tree[0]["rtable"][0]["relid"] == "5"


@pytest.mark.timeout(300)
def test_what_the_server_binds_in_the_corpus_was_checked() -> None:
    tally = Tally()
    compare_corpus(tally, 18)
    assert tally.unchecked == []
    assert tally.counts["bound"] > 1400
    assert tally.counts["equal"] > 0.99 * tally.counts["bound"]


@pytest.mark.timeout(300)
def test_what_the_server_binds_in_generated_statements_was_checked() -> None:
    tally = Tally()
    with generated(16, traps=True) as world:
        world.compare(tally, range(600))
    assert tally.unchecked == []
    assert tally.counts["bound"] > 50
    assert tally.counts["equal"] > 0.95 * tally.counts["bound"]
