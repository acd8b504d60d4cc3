"""Lua: functions in all their spellings, also those stored in a table at the top level."""

from adapter.outline.language import Language, make_rule, strip_pattern

_ASSIGNED = (
    make_rule("imports", when=r"^(?:local\s+)?[^=]*=\s*require\b"),
    make_rule("fns", value=("function_definition",)),
    make_rule("consts", when=r"\bfunction\s*\(", value=("table_constructor", "function_call"), members=True),
    make_rule("consts"),
)

LANGUAGE = Language(
    name="Lua",
    extensions=("lua",),
    grammar="tree_sitter_lua",
    rules={
        "variable_declaration": _ASSIGNED,
        "assignment_statement": _ASSIGNED,
        "function_call": make_rule("imports", when=r"^require\b"),
        "function_declaration": make_rule("fns"),
        "field": make_rule("fns", value=("function_definition",)),
    },
    import_path=strip_pattern(r"""^.*?\brequire\b[\s(]*['"]|['"].*$"""),
    separator=".",
    through=frozenset(
        {"if_statement", "do_statement", "block", "else_statement", "elseif_statement"}
        | {"return_statement", "expression_list", "table_constructor", "arguments", "function_call"}
        | {"function_definition"}  # a module that returns the function which makes it
    ),
    body=frozenset({"body", "table_constructor", "arguments"}),
)
