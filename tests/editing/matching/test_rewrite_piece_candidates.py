"""The spans of a file that a piece of a rewritten file may replace."""

from adapter.editing.matching.rewrite_piece_candidates import MAX_PLACES, Piece, PieceCandidates
from adapter.editing.matching.rewrite_piece_placement import PiecePlacer

LINES = ["unit(1)", 'fail("UPDATE_ALL_SNAPSHOTS")', "", "middle(2)", "", "unit(1)", 'fail("UPDATE_PASS")', "", "end(3)"]


def test_a_changed_last_line_may_replace_the_nearest_or_the_most_similar_line():
    """Neither is certain: the nearest line is less similar than a line farther down."""
    piece = Piece(["unit(1)", 'fail("UPDATE_ALL")'], 0, False)
    spans = {(each.start, each.end) for each in PieceCandidates(LINES, [piece])._find_candidates(piece)}
    assert {(0, 2), (5, 7)} <= spans


class SearchedLine(str):
    """A line that counts how often it is searched for another text."""

    searches = 0

    def __contains__(self, text):
        SearchedLine.searches += 1
        return super().__contains__(text)


def test_each_added_line_is_searched_in_a_bounded_number_of_lines():
    """A large rewrite would otherwise take time proportional to the square of its length."""
    old = [f"call({at}, value_{at // 3})" for at in range(3_000)]
    added = [f"call({-at}, value_{at})" for at in range(500)]
    piece = Piece([old[1_000], *added, old[1_001]], 0, False)
    placer = PiecePlacer(old, [piece])
    placer._old = [*map(SearchedLine, old)]
    SearchedLine.searches = 0
    spans = [placer._score(piece.lines, 1_000, 1_002)]
    placer._find_moved_lines(spans, {*range(1_000), *range(1_002, 3_000)})
    assert 0 < SearchedLine.searches <= MAX_PLACES * len(added)
