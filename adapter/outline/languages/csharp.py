"""C#: types and their members, properties among the fields; attributes are left out of signatures."""

from adapter.outline.language import Language, make_rule, strip_pattern

LANGUAGE = Language(
    name="C#",
    extensions=("cs",),
    aliases=("csharp", "c-sharp"),
    grammar="tree_sitter_c_sharp",
    rules={
        "using_directive": make_rule("imports"),
        "namespace_declaration": make_rule("mods", inside=True),
        "file_scoped_namespace_declaration": make_rule("mods", inside=True),
        "class_declaration": make_rule("classes", members=True),
        "record_declaration": make_rule("classes", members=True),
        "struct_declaration": make_rule("types", members=True),
        "enum_declaration": make_rule("types", members=True),
        "delegate_declaration": make_rule("types"),
        "interface_declaration": make_rule("traits", members=True),
        "field_declaration": make_rule("fields"),
        "event_field_declaration": make_rule("fields"),
        "event_declaration": make_rule("fields"),
        "property_declaration": make_rule("fields"),
        "indexer_declaration": make_rule("fns"),
        "enum_member_declaration": make_rule("fields"),
        "method_declaration": make_rule("fns"),
        "constructor_declaration": make_rule("fns"),
        "destructor_declaration": make_rule("fns"),
        "operator_declaration": make_rule("fns"),
        "conversion_operator_declaration": make_rule("fns"),
        "local_function_statement": make_rule("fns"),
    },
    import_path=strip_pattern(r"^(?:global\s+)?using\s+(?:static\s+)?|\s*;$"),
    separator=".",
    through=frozenset({"global_statement", "preproc_if", "preproc_else", "preproc_elif", "declaration_list"}),
    body=frozenset({"body", "accessor_list", "accessors", "arrow_expression_clause", "constructor_initializer"}),
    dropped=frozenset({"attribute_list"}),
    names=("name", "declarator", "parameters"),
)
