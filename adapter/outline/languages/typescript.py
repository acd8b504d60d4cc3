"""TypeScript and TSX: JavaScript's table and what types add."""

from dataclasses import replace

from adapter.outline.language import Language, make_rule
from adapter.outline.languages import javascript

LANGUAGE = Language(
    name="TypeScript",
    extensions=("ts", "mts", "cts"),
    aliases=("ts",),
    grammar="tree_sitter_typescript",
    loader="language_typescript",
    rules={
        **javascript.RULES,
        "interface_declaration": make_rule("types", members=True),
        "type_alias_declaration": make_rule("types"),
        "enum_declaration": make_rule("types", members=True),
        "abstract_class_declaration": make_rule("classes", members=True),
        "internal_module": make_rule("mods", inside=True),
        "module": make_rule("mods", inside=True),
        "function_signature": make_rule("fns"),
        "method_signature": make_rule("fns"),
        "abstract_method_signature": make_rule("fns"),
        "construct_signature": make_rule("fns"),
        "call_signature": make_rule("fns"),
        "index_signature": make_rule("fields"),
        "property_signature": make_rule("fields"),
        "public_field_definition": (make_rule("fns", value=javascript.FUNCTIONS), make_rule("fields")),
        "enum_assignment": make_rule("fields"),
        "property_identifier": make_rule("fields", variant=True),
    },
    import_path=javascript.import_path,
    wrappers=frozenset({"export_statement", "ambient_declaration"}),
    through=javascript.LANGUAGE.through,
    body=javascript.BODY,
    names=javascript.LANGUAGE.names,
    attached=frozenset({"decorator"}),
    dropped=frozenset({"decorator"}),
)

TSX = replace(LANGUAGE, name="TSX", extensions=("tsx",), aliases=("tsx",), loader="language_tsx")
