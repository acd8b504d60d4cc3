"""The text of a whole file, as small models write it."""

import pytest

from adapter.core.errors import EditError
from adapter.editing.file_content import prepare_file_content

CODE = "import os\n\n\nprint(os)\n"
ESCAPED = CODE.replace("\n", "\\n")


@pytest.mark.parametrize(
    ("path", "text", "content", "note"),
    [
        ("a.py", f"```python\n{CODE}```", CODE, "code fence"),
        ("a.py", f"~~~\n{CODE}~~~\n", CODE, "code fence"),
        ("a.py", "```python\nprint(\n```", "print(\n", "code fence"),
        ("src/a.zig", f"```zig\n{CODE}```\n", CODE, "code fence"),
        ("a.json", '```json\n{"a": 1}\n```', '{"a": 1}\n', "code fence"),
        ("a.py", ESCAPED, CODE, "backslash escapes"),
        ("a.txt", "buy milk\\nbuy bread\\n", "buy milk\nbuy bread\n", "backslash escapes"),
        ("a.json", '{\\n  \\"a\\": 1\\n}', '{\n  "a": 1\n}', "backslash escapes"),
        ("a.py", "1: import os\n2:\n3: print(os)\n", "import os\n\nprint(os)\n", "line numbers"),
        ("a.py", "1\timport os\n2\t\n3\tprint(os)\n", "import os\n\nprint(os)\n", "line numbers"),
        ("a.py", "```python\n1: import os\n2:\n3: print(os)\n```", "import os\n\nprint(os)\n", "line numbers"),
        ("a.py", "1 | ```python\n2 | import os\n3 | ```\n", "import os\n", "code fence"),
        ("a.py", "```python\nif 1 &lt; 2:\n    pass\n```\n", "if 1 < 2:\n    pass\n", "HTML entities"),
        ("a.py", "```python\\nimport os\\nprint(os)\\n```", "import os\nprint(os)\n", "code fence"),
        ("a.zig", "```zig\\nimport os;\\nprint(os);\\n```\\n", "import os;\nprint(os);\n", "backslash escapes"),
        ("a.py", "x = 1 &lt; 2 &amp;&amp;\n", "x = 1 &lt; 2 &amp;&amp;\n", "line 1 does not parse"),
        ("a.py", "if 1 &lt; 2:\n    pass\n", "if 1 < 2:\n    pass\n", "HTML entities"),
        ("a.toml", "a = [1, 2", "a = [1, 2", "line 1 does not parse"),
        # as it is written
        ("a.md", f"```python\n{CODE}```", f"```python\n{CODE}```", ""),
        ("v1.2/README", f"```python\n{CODE}```", f"```python\n{CODE}```", ""),
        ("a.zig", f"```\n{CODE}```\n\n```\n{CODE}```\n", f"```\n{CODE}```\n\n```\n{CODE}```\n", ""),
        ("a.py", 'x = "1\\n2"', 'x = "1\\n2"', ""),
        ("a.sh", "printf 'a\\nb\\n'", "printf 'a\\nb\\n'", ""),
        ("a.txt", "C:\\new", "C:\\new", ""),
        ("a.json", "{1: 2}", "{1: 2}", "line 1 does not parse"),
        ("a.yaml", "1: one\n2: two\n", "1: one\n2: two\n", ""),
        ("a.html", "<p>1 &lt; 2</p>", "<p>1 &lt; 2</p>", ""),
        ("a.json", '"&lt;"', '"&lt;"', ""),
        ("a.diff", "--- a/b\n+++ b/b\n@@ -1 +1 @@\n-a\n+b\n", "--- a/b\n+++ b/b\n@@ -1 +1 @@\n-a\n+b\n", ""),
        ("a.py", "", "", ""),
    ],
)
def test_wrapping_is_removed_from_a_new_file(path, text, content, note):
    found, notes = prepare_file_content(text, path)
    assert found == content
    assert bool(notes) == bool(note)
    assert note in "".join(notes)


@pytest.mark.parametrize(
    "patch",
    [
        "--- a/a.py\n+++ b/a.py\n@@ -4 +4 @@\n-print(os)\n+print(1)\n",
        "```diff\n@@ -4 +4 @@\n-print(os)\n+print(1)\n```",
        "<<<<<<< SEARCH\nprint(os)\n=======\nprint(1)\n>>>>>>> REPLACE\n",
        "*** Begin Patch\n*** Update File: a.py\n-print(os)\n+print(1)\n*** End Patch",
    ],
)
def test_patch_does_not_overwrite_the_file(patch):
    with pytest.raises(EditError, match="the content is a patch; use the tool for edits"):
        prepare_file_content(patch, "a.py", CODE)
    assert prepare_file_content(patch, "a.md", CODE).text == patch


def test_new_syntax_error_is_a_note():
    assert prepare_file_content("print(", "a.py", CODE).notes == ("line 1 no longer parses: '(' was never closed",)
