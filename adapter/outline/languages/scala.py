"""Scala 2 and 3: objects are classes, givens and extensions are impls."""

from adapter.outline.language import Language, make_rule, strip_pattern

LANGUAGE = Language(
    name="Scala",
    extensions=("scala", "sc"),
    grammar="tree_sitter_scala",
    rules={
        "package_clause": make_rule("mods", inside=True),
        "import_declaration": make_rule("imports"),
        "val_definition": make_rule("consts"),
        "var_definition": make_rule("consts"),
        "val_declaration": make_rule("fields"),
        "var_declaration": make_rule("fields"),
        "type_definition": make_rule("types"),
        "class_definition": make_rule("classes", members=True),
        "object_definition": make_rule("classes", members=True),
        "package_object": make_rule("classes", members=True),
        "trait_definition": make_rule("traits", members=True),
        "enum_definition": make_rule("types", members=True),
        "given_definition": make_rule("impls", members=True),
        "extension_definition": make_rule("impls", members=True),
        "simple_enum_case": make_rule("fields", variant=True),
        "full_enum_case": make_rule("fields"),
        "function_definition": make_rule("fns"),
        "function_declaration": make_rule("fns"),
    },
    import_path=strip_pattern(r"^import\s+"),
    separator=".",
    through=frozenset({"enum_case_definitions", "template_body"}),
    dropped=frozenset({"annotation"}),
)
