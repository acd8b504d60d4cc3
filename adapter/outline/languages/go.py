"""Go: the members of a group (``const ( ... )``) are items of their own."""

from adapter.outline.language import Language, make_rule

_STRUCTURES = r"^[^\n]*?\b(?:struct|interface)\s*\{"


def _import_path(text: str) -> str:
    alias, _, path = text.rpartition(" ")
    return path.strip('"`') + (f" as {alias}" if alias else "")


LANGUAGE = Language(
    name="Go",
    extensions=("go",),
    aliases=("golang",),
    grammar="tree_sitter_go",
    rules={
        "package_clause": make_rule("mods"),
        "import_spec": make_rule("imports"),
        "const_spec": make_rule("consts"),
        "var_spec": make_rule("consts"),
        "type_spec": (make_rule("types", when=_STRUCTURES, members=True), make_rule("types")),
        "type_alias": make_rule("types"),
        "method_declaration": make_rule("fns"),
        "function_declaration": make_rule("fns"),
        "field_declaration": make_rule("fields"),
        "method_elem": make_rule("fns"),
        "type_elem": make_rule("fields"),
    },
    import_path=_import_path,
    separator="/",
    wrappers=frozenset({"type_declaration"}),
    through=frozenset(
        {"import_declaration", "import_spec_list", "const_declaration", "var_declaration", "var_spec_list"}
        | {"struct_type", "interface_type"}
    ),
    body=frozenset({"body", "field_declaration_list", "interface_type"}),
)
