"""Comments that replace lines of the file, in many words and languages: those lines must not be lost."""

import pytest

from adapter.core.errors import EditError
from adapter.editing import patch_text
from adapter.editing.file_content import prepare_file_content

OLD = "export function load() {\n  const a = read();\n  const b = parse(a);\n  check(b);\n  return b;\n}\n"
OMISSIONS = (
    "... bestehender Code ...", "Rest unverändert", "die restlichen Zeilen bleiben gleich",
    "... reste du code inchangé", "les autres lignes restent identiques: code existant",
    "... código existente ...", "otras funciones permanecen igual", "resto do código inalterado",
    "... resto del codice invariato ...", "reszta kodu bez zmian", "остальной код без изменений", "kalan kod aynı",
    "其余代码不变", "其他代码保持不变...", "... 省略 ...", "既存のコード ...", "残りは変更なし", "以下省略",
    "나머지 코드는 동일", "... sisanya tetap sama ...", "... validation logic", "leave the rest as is",
)  # fmt: skip
VAGUE = (
    "and so on", "your code here", "everything else", "keep as is", "don't change below", "old body", "see above",
    "function body remains", "more code", "not shown", "ditto", "implementation goes here", "fill in the rest",
    "calls read() and check() as before", "read(), parse() ...", "TODO: keep existing code",
)  # fmt: skip
UNLISTED = (
    "content preserved", "trimmed", "prior code", "additional code", "lines 4 to 6", "as in the current file",
    "see file", "same again", "you get the idea", "cut for length", "full version in the repository",
    "copy from line 3", "retain the two calls", "earlier code", "no edits needed",
    "handled elsewhere", "code goes on", "not relevant",
    "boilerplate", "error handling", "further steps", "parse and check", "(2 lines)", "[3 lines]", "yada yada",
    "paste the old text", "current implementation", "as it stood", "use what is there", "abridged", "do the work",
    "preserve", "nothing new below", "fill me in", "already correct", "ok", "function internals", "pass-through",
    "wie gehabt", "hier weiter wie bisher", "Inhalt beibehalten", "siehe oben", "à compléter", "idem", "comme avant",
    "contenu conservé", "como antes", "contenido conservado", "como estava", "mantém o código", "come prima",
    "zoals voorheen", "overige regels", "som tidigare", "beze změny", "jak poprzednio", "как раньше", "код выше",
    "без змін", "önceki gibi", "όπως πριν", "كما هو", "ללא שינוי", "पहले जैसा", "giữ nguyên", "seperti semula",
    "เหมือนเดิม", "同上", "略", "此处不动", "以下同様", "前と同じ処理", "이전과 같음", "kuten ennen", "változatlan",
)  # fmt: skip
COMMENTS = ("// {}", "# {}", "/* {} */", "-- {}", "<!-- {} -->", "{{/* {} */}}", "; {}", "% {}", "(* {} *)")
LITERAL = (
    "le code existant doit rester valide", "devuelve el resto", "проверка остатка", "解析其余的数据",
    "既存のデータを確認する", "loading...", "return the rest of the items to the caller",
)  # fmt: skip


KEPT_BELOW = OLD.replace("  check(b);\n", "  check(b);\n  store(b);\n")
"""A comment that replaces lines of this function is followed by a line that stays."""


def build_diff(comment):
    removed = "".join(f"-{line}\n" for line in OLD.splitlines()[1:-1])
    head = "--- a/a.ts\n+++ b/a.ts\n@@ -1,6 +1,4 @@\n export function load() {\n"
    return f"{head}{removed}+  read();\n+  // {comment}\n }}\n"


@pytest.mark.parametrize("comment", OMISSIONS + VAGUE)
def test_edits_that_would_lose_the_omitted_lines_are_rejected(comment):
    new = f"export function load() {{\n  read();\n  // {comment}\n}}\n"
    for patches in ([{"old_text": OLD, "new_text": new}], build_diff(comment)):
        with pytest.raises(EditError, match="instead of real lines"):
            patch_text(OLD, patches)


@pytest.mark.parametrize(("number", "phrase"), [*enumerate(UNLISTED)])
@pytest.mark.parametrize(
    "body",
    [
        "  read();\n  {}\n",
        "  const a = readAll();\n  {}\n  return b;\n",
        "  {}\n  return b;\n",
        "  {}\n  return verify(b);\n",
        "  const a = read();\n  {}\n  store(b, a);\n  return b;\n",
        "  const a = read();\n  const b = parse(a);\n  check(b);\n  {}\n  return b;\n",
    ],
)
def test_a_short_comment_does_not_replace_code(number, phrase, body):
    comment = COMMENTS[number % len(COMMENTS)].format(phrase)
    new = f"export function load() {{\n{body.format(comment)}}}\n"
    with pytest.raises(EditError, match="instead of real lines"):
        patch_text(KEPT_BELOW, [{"old_text": KEPT_BELOW, "new_text": new}])
    with pytest.raises(EditError, match="was not overwritten"):
        prepare_file_content(new, "a.ts", KEPT_BELOW)


@pytest.mark.parametrize(
    ("path", "old", "new"),
    [
        ("a.md", "# Use\n\nOne.\nTwo.\nThree.\n\nEnd.\n", "# Usage\n\nEnd.\n"),
        ("a.py", "a = 1\nb = 2\nc = 3\n", "# new constants\nfirst = build(7)\n"),
        ("a.py", "a = 1\nuse(a)\nrun(a)\n", "a = 1\n# use(a)\nrun(a)\n"),
        ("a.ts", "f()\ng()\nh()\ni()\n", "f()\n;(g as any)(h)\ni()\n"),
        ("a.py", "# read the items\na = 1\nrun(a)\n", "# read all items\nrun(1)\n"),
    ],
)
def test_headings_and_comments_on_code_are_written(path, old, new):
    assert patch_text(old, [{"old_text": old, "new_text": new}], path).text == new
    assert prepare_file_content(new, path, old).text == new


def test_a_comment_that_is_meant_can_be_added_after_the_lines_are_deleted():
    lost, comment = "  check(b);\n  store(b);\n", "  // mid-point\n"
    with pytest.raises(EditError, match="delete the lines in one edit and add it in another"):
        patch_text(KEPT_BELOW, [{"old_text": lost, "new_text": comment}])
    shorter = patch_text(KEPT_BELOW, [{"old_text": lost, "new_text": ""}]).text
    above = "  const b = parse(a);\n"
    assert comment in patch_text(shorter, [{"old_text": above, "new_text": above + comment}]).text


@pytest.mark.parametrize("comment", ["{/* existing children */}", "<!-- existing nodes -->"])
def test_existing_things_that_a_comment_names_are_not_lost(comment):
    old, new = (f"<A>\n{lines}</A>\n" for lines in ("  <B />\n  <C />\n", f"  {comment}\n  <D />\n"))
    with pytest.raises(EditError, match="instead of real lines"):
        patch_text(old, [{"old_text": old, "new_text": new}], "a.tsx")


@pytest.mark.parametrize("comment", LITERAL)
def test_comments_about_the_rest_of_something_are_written(comment):
    patch = {"old_text": "  check(b);\n  return b;\n", "new_text": f"  // {comment}\n  return verify(b);\n"}
    assert patch_text(OLD, [patch]).text == OLD.replace(
        "  check(b);\n  return b;", f"  // {comment}\n  return verify(b);"
    )


@pytest.mark.parametrize("comment", [*VAGUE, "old servers need this"])
def test_vague_comments_are_written_if_hardly_any_code_is_lost(comment):
    patch = {"old_text": "  check(b);\n  return b;\n", "new_text": f"  // {comment}\n  return verify(b);\n"}
    assert f"// {comment}\n  return verify(b);" in patch_text(OLD, [patch]).text


def test_whole_files_with_vague_comments_in_place_of_code_are_rejected():
    old = OLD + "".join(f"\nexport const value{number} = {number};\n" for number in range(9))
    new = old.replace("  check(b);\n  return b;\n", "  // and so on\n")
    with pytest.raises(EditError, match="'// and so on' replaces lines of the file"):
        patch_text(old, f"```ts a.ts\n{new}```", "a.ts")


def test_omitted_parts_of_a_whole_file_are_kept():
    parts = ("import a\nimport b\n", "def first(x):\n    return alpha(x)\n", "def second(x):\n    return beta(x)\n",
             "def third(x):\n    return gamma(x)\n")  # fmt: skip
    written = "\n\n".join(
        ("import a\nimport b\n", "# ... 其余代码保持不变 ...\n", parts[2].replace("beta", "delta"), parts[3])
    )
    result = patch_text("\n\n".join(parts), f"a.py\n```python\n{written}```\n")
    assert result.text == "\n\n".join(parts).replace("beta", "delta")
