"""PHP: namespaces with braces are looked into; attributes are left out of signatures."""

from adapter.outline.language import Language, make_rule, strip_pattern

LANGUAGE = Language(
    name="PHP",
    extensions=("php", "phtml"),
    grammar="tree_sitter_php",
    loader="language_php",
    rules={
        "namespace_definition": make_rule("mods", inside=True),
        "namespace_use_declaration": make_rule("imports"),
        "const_declaration": make_rule("consts"),
        "function_call_expression": make_rule("consts", when=r"^define\s*\("),
        "class_declaration": make_rule("classes", members=True),
        "interface_declaration": make_rule("traits", members=True),
        "trait_declaration": make_rule("traits", members=True),
        "enum_declaration": make_rule("types", members=True),
        "use_declaration": make_rule("fields"),
        "property_declaration": make_rule("fields"),
        "enum_case": make_rule("fields"),
        "method_declaration": make_rule("fns"),
        "function_definition": make_rule("fns"),
    },
    import_path=strip_pattern(r"^use\s+(?:function\s+|const\s+)?\\?|\s*;$"),
    separator="\\",
    through=frozenset({"expression_statement", "compound_statement", "if_statement", "else_clause", "colon_block"}),
    dropped=frozenset({"attribute_list"}),
)
