"""Java: types and their members; annotations are left out of signatures."""

from adapter.outline.language import Language, make_rule, strip_pattern

LANGUAGE = Language(
    name="Java",
    extensions=("java",),
    grammar="tree_sitter_java",
    rules={
        "package_declaration": make_rule("mods"),
        "import_declaration": make_rule("imports"),
        "class_declaration": make_rule("classes", members=True),
        "record_declaration": make_rule("classes", members=True),
        "enum_declaration": make_rule("types", members=True),
        "interface_declaration": make_rule("traits", members=True),
        "annotation_type_declaration": make_rule("traits", members=True),
        "field_declaration": make_rule("fields"),
        "constant_declaration": make_rule("fields"),
        "enum_constant": make_rule("fields", variant=True),
        "method_declaration": make_rule("fns"),
        "constructor_declaration": make_rule("fns"),
        "compact_constructor_declaration": make_rule("fns"),
        "annotation_type_element_declaration": make_rule("fns"),
    },
    import_path=strip_pattern(r"^import\s+(?:static\s+)?|\s*;$"),
    separator=".",
    through=frozenset({"enum_body_declarations"}),
    dropped=frozenset({"annotation", "marker_annotation"}),
)
