"""Merging the changes of a patch into a version of the text that has changed since."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.core.errors import EditError
from adapter.editing.three_way_merge import merge_changes


def join(lines):
    return "".join(f"{line}\n" for line in lines)


@pytest.mark.parametrize(
    ("earlier", "wanted", "current", "merged"),
    [
        ("abcdef", "abCdef", "XXabcdef", "XXabCdef"),
        ("abcdef", "abCdef", "abcdeF", "abCdeF"),
        ("abcdef", "abCdef", "aBcdef", "aBCdef"),  # a changed line next to another one
        ("abcdef", "abdef", "Xbcdef", "Xbdef"),
        ("abcdef", "abcXdef", "acdef", "acXdef"),
        ("1ab2ab", "1ab2aB", "2ab", "2aB"),  # the first of two equal blocks is gone
        ("abcdef", "abXcdef", "aBcdef", "aBXcdef"),
        ("abcdef", "abCdef", "abYcdef", "abYCdef"),
        ("abcdef", "aBcdeF", "Xabcdef", "XaBcdeF"),
        ("abcdefg", "aBcdefG", "abcXdefg", "aBcXdefG"),
        ("", "a", "", "a"),
    ],
)
def test_changes_of_different_lines_are_merged(earlier, wanted, current, merged):
    assert merge_changes(join(earlier), join(wanted), join(current)) == join(merged)


@pytest.mark.parametrize(
    ("earlier", "wanted", "current"),
    [
        ("abcdef", "abCdef", "abXdef"),
        ("abcdef", "abCdef", "abdef"),
        ("abcdef", "abCdef", "abCdef"),  # made before
        ("1ab2ab", "1aB2ab", "2ab"),  # the equal line that remains is another one
        ("abcdef", "aXdef", "abYcdef"),  # lines were added between those to change
        ("abcdef", "abXcdef", "aef"),  # the lines around the added one are gone
        ("abcabd", "abcaBd", "abd"),  # "abc" or "cab" may be gone
        ("abab", "aBab", "ab"),  # either of the equal blocks may be gone
        ("aabcc", "aaBcc", "aacc"),
        ("abcdef", "abXcYdef", "abdef"),  # the line to enclose is gone
        ("abcdef", "aBcDef", "abCdef"),
        ("xybxz", "Xybxz", "xwz"),  # either x may be the one that is left
    ],
)
def test_changes_of_the_same_lines_are_rejected(earlier, wanted, current):
    with pytest.raises(EditError, match=r"lines? [\d-]+ of the version that you read"):
        merge_changes(join(earlier), join(wanted), join(current))


@pytest.mark.parametrize(
    ("earlier", "wanted", "current"),
    [
        ("abcdef", "abXcdef", "abYcdef"),  # which one is first?
        ("abcdef", "abXcdef", "aBYcdef"),
        ("abcdef", "abCXdef", "abYcdef"),
        ("abcdef", "abcXcdef", "abCdef"),  # which c of the two?
    ],
)
def test_order_of_lines_at_the_same_place_is_uncertain(earlier, wanted, current):
    assert merge_changes(join(earlier), join(wanted), join(current)) is None


@given(st.lists(st.sampled_from("abc"), max_size=12), st.data())
def test_a_merge_never_changes_another_line(lines, data):
    """Each line has a number, so that the lines of the merge can be told apart."""
    numbered = [f"{line}{at}" for at, line in enumerate(lines)]
    ours = data.draw(st.sets(st.sampled_from(range(len(lines)))) if lines else st.just(set()))
    theirs = data.draw(st.sets(st.sampled_from(range(len(lines)))) if lines else st.just(set()))
    change = {at: f"ours {at}" for at in ours}
    other = {at: f"theirs {at}" for at in theirs}
    texts = (
        join(numbered),
        join(change.get(at, line) for at, line in enumerate(numbered)),
        join(other.get(at, line) for at, line in enumerate(numbered)),
    )
    if ours & theirs:
        with pytest.raises(EditError):
            merge_changes(*texts)
    else:
        both = change | other
        assert merge_changes(*texts) == join(both.get(at, line) for at, line in enumerate(numbered))
