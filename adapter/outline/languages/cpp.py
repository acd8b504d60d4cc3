"""C++: C's table with classes, namespaces and templates."""

from adapter.outline.language import Language, make_rule, strip_pattern
from adapter.outline.languages import c

LANGUAGE = Language(
    name="C++",
    extensions=("cpp", "cc", "cxx", "hpp", "hxx", "hh", "ipp", "tpp"),
    aliases=("cpp", "c++", "cxx"),
    grammar="tree_sitter_cpp",
    rules={
        **c.RULES,
        "using_declaration": make_rule("imports", when=r"^using\s+namespace\b"),
        "alias_declaration": make_rule("types"),
        "concept_definition": make_rule("types"),
        "namespace_definition": make_rule("mods", inside=True),
        "class_specifier": make_rule("classes", members=True),
        "struct_specifier": make_rule("classes", members=True),
        "field_declaration": (
            make_rule("types", when=r"^(?:struct|union|enum|class)\b[^;=()]*\{", members=True),
            make_rule("fns", declarator="function_declarator"),
            make_rule("fields"),
        ),
    },
    import_path=strip_pattern(r"^#\s*(?:include|import)\s*|;$"),
    wrappers=frozenset({"template_declaration", "friend_declaration"}),
    through=c.THROUGH,
    body=frozenset({"body", "field_initializer_list", "default_method_clause", "delete_method_clause"}),
    names=("name", "declarator"),
    prefix="#define ",
    blanked=c.MACROS,
)
