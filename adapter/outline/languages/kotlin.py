"""Kotlin: companion objects are members; a function's body begins at its ``{`` or ``=``."""

from adapter.outline.language import Language, make_rule, strip_pattern

LANGUAGE = Language(
    name="Kotlin",
    extensions=("kt", "kts"),
    aliases=("kt",),
    grammar="tree_sitter_kotlin",
    rules={
        "package_header": make_rule("mods"),
        "import": make_rule("imports"),
        "property_declaration": make_rule("consts"),
        "type_alias": make_rule("types"),
        "class_declaration": (
            make_rule("traits", when=r"^(?:[\w@()\"]+\s+)*?(?:fun\s+)?interface\b", members=True),
            make_rule("types", when=r"^(?:[\w@()\"]+\s+)*?enum\s+class\b", members=True),
            make_rule("classes", members=True),
        ),
        "object_declaration": make_rule("classes", members=True),
        "companion_object": make_rule("classes", members=True),
        "secondary_constructor": make_rule("fns"),
        "function_declaration": make_rule("fns"),
        "enum_entry": make_rule("fields", variant=True),
    },
    import_path=strip_pattern(r"^import\s+"),
    separator=".",
    body=frozenset(
        {"class_body", "enum_class_body", "function_body", "getter", "setter", "block", "property_delegate"}
    ),
    dropped=frozenset({"annotation"}),
    names=("name", "type"),
)
