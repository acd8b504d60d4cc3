"""Each rejected patch has a kind that callers can act on."""

import pytest

from adapter.core.errors import EditError
from adapter.editing import patch_text
from adapter.tools.operations import ParameterNames

TEXT = "def area(width, height):\n    total = width * height\n    return total\n\n\nsame = 1\nsame = 1\n"


@pytest.mark.parametrize(
    ("old", "new", "kind"),
    [
        ("nothing like this is there", "x", "not found"),
        ("same = 1", "same = 2", "ambiguous"),
        ("same = 1", "same = 1", "no change"),
        ("    total = height", "    total = width * height", "already applied"),
        ("", "x", "invalid"),
        ("    return total", "    # ... rest of the code ...", "invalid"),
    ],
)
def test_a_rejected_patch_has_a_kind(old, new, kind):
    with pytest.raises(EditError) as caught:
        patch_text(TEXT, {"old_text": old, "new_text": new})
    assert caught.value.kinds == (kind,)


def test_a_short_file_is_shown_without_a_line_that_it_does_not_have():
    with pytest.raises(EditError, match=r"which is:\n1: one\n2: two\nCopy"):
        patch_text("one\ntwo\n", [{"old_text": "zzzz", "new_text": "x"}])


def test_each_rejected_patch_of_several_has_its_kind():
    patches = [
        {"old_text": "same = 1", "new_text": "same = 2"},
        {"old_text": "    return total", "new_text": "    return 1"},
        {"old_text": "nothing like this is there", "new_text": "x"},
    ]
    with pytest.raises(EditError) as caught:
        patch_text(TEXT, patches, names=ParameterNames())
    assert caught.value.kinds == ("ambiguous", "not found")
    assert len(caught.value.failures) == 2


def test_patches_of_one_another_are_dependent_or_overlap():
    patches = [
        {"old_text": "total = width * height", "new_text": "product = width * height"},
        {"old_text": "product = width * height", "new_text": "size = width * height"},
    ]
    with pytest.raises(EditError) as caught:
        patch_text(TEXT, patches)
    assert caught.value.kinds == ("dependent",)
    twice = [{"old_text": "    return total", "new_text": f"    return {value}"} for value in (1, 2)]
    with pytest.raises(EditError) as caught:
        patch_text(TEXT, twice)
    assert caught.value.kinds == ("overlapping",)


BLOCK = "{guard}\n{lead}def open_log(path):\n{lead}    handle = open_file(path)\n{lead}    return handle\n"
GUARDS = (
    ("#[cfg(unix)]", "#[cfg(not(unix))]"), ('#[cfg(feature = "std")]', '#[cfg(not(feature = "std"))]'),
    ("#ifdef _WIN32", "#ifndef _WIN32"), ("#ifdef __linux__", "#ifdef __APPLE__"), ("#if HAVE_SSL", "#if !HAVE_SSL"),
    ("#if defined(A)", "#if !defined(A)"), ("//go:build linux", "//go:build !linux"), ("if strict:", "if not strict:"),
    ("@pytest.mark.skipif(WINDOWS)", "@pytest.mark.skipif(not WINDOWS)"), ("when: os == 'a'", "when: os != 'a'"),
    ("if [ -f a ]; then", "if [ ! -f a ]; then"), ("unless strict", "if strict"), ("if (strict) {", "} else {"),
)  # fmt: skip


@pytest.mark.parametrize("pair", GUARDS)
@pytest.mark.parametrize("is_swapped", [False, True])
def test_code_under_the_opposite_condition_is_not_edited(pair, is_swapped):
    shown, actual = pair[::-1] if is_swapped else pair
    lead = "    " if shown.startswith(("if ", "unless", "}")) else ""
    old, there = (BLOCK.format(guard=guard, lead=lead) for guard in (shown, actual))
    text = f"first = 1\n{there}\n\nlast = 2\n"
    with pytest.raises(EditError):
        patch_text(text, {"old_text": old, "new_text": old.replace("return handle", "return [handle]")})
    assert "[handle]" in patch_text(text, {"old_text": there, "new_text": there.replace("handle", "[handle]")}).text
