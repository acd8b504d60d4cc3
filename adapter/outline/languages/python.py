"""Python: what a module declares, also below ``if`` and ``try``; decorators belong to what they decorate."""

import re

from adapter.outline.language import Language, make_rule

_FROM = re.compile(r"^from\s+(\S+)\s+import\s+\(?(.*?),?\s*\)?$", re.DOTALL)


def _import_path(text: str) -> str:
    found = _FROM.match(text)
    if not found:
        return text.removeprefix("import").strip()
    module, names = found.groups()
    return f"{module}{'' if module.endswith('.') else '.'}{{{names}}}"


LANGUAGE = Language(
    name="Python",
    extensions=("py", "pyi"),
    aliases=("py", "python3"),
    grammar="tree_sitter_python",
    rules={
        "import_statement": make_rule("imports"),
        "import_from_statement": make_rule("imports"),
        "future_import_statement": make_rule("imports"),
        "assignment": make_rule("consts", when=r"^[\w, ]+?\s*[:=]"),
        "type_alias_statement": make_rule("types"),
        "class_definition": make_rule("classes", members=True),
        "function_definition": make_rule("fns"),
    },
    import_path=_import_path,
    separator=".",
    wrappers=frozenset({"decorated_definition"}),
    through=frozenset(
        {
            *("expression_statement", "block", "with_statement", "for_statement", "while_statement"),
            *("if_statement", "elif_clause", "else_clause"),
            *("try_statement", "except_clause", "except_group_clause", "finally_clause"),
        }
    ),
)
