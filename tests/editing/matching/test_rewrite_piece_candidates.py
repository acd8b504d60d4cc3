"""The spans of a file that a piece of a rewritten file may replace."""

from adapter.editing.matching.rewrite_piece_candidates import Piece, PieceCandidates

LINES = ["unit(1)", 'fail("UPDATE_ALL_SNAPSHOTS")', "", "middle(2)", "", "unit(1)", 'fail("UPDATE_PASS")', "", "end(3)"]


def test_a_changed_last_line_may_replace_the_nearest_or_the_most_similar_line():
    """Neither is certain: the nearest line is less similar than a line farther down."""
    piece = Piece(["unit(1)", 'fail("UPDATE_ALL")'], 0, False)
    spans = {(each.start, each.end) for each in PieceCandidates(LINES, [piece])._find_candidates(piece)}
    assert {(0, 2), (5, 7)} <= spans
