"""Rust: items by their own sections; attributes and doc comments widen an item, ``mod tests`` is one range."""

from adapter.outline.language import Language, make_rule, strip_pattern

LANGUAGE = Language(
    name="Rust",
    extensions=("rs",),
    aliases=("rs",),
    grammar="tree_sitter_rust",
    rules={
        "use_declaration": make_rule("imports"),
        "extern_crate_declaration": make_rule("imports"),
        "mod_item": (make_rule("tests", when=r"^mod tests?\b"), make_rule("mods", inside=True)),
        "const_item": make_rule("consts"),
        "static_item": make_rule("consts"),
        "struct_item": make_rule("types", members=True),
        "union_item": make_rule("types", members=True),
        "enum_item": make_rule("types", members=True),
        "type_item": make_rule("types"),
        "trait_item": make_rule("traits", members=True),
        "impl_item": make_rule("impls", members=True),
        "function_item": make_rule("fns"),
        "function_signature_item": make_rule("fns"),
        "macro_definition": make_rule("macros"),
        "field_declaration": make_rule("fields"),
        "enum_variant": make_rule("fields"),
        "associated_type": make_rule("types"),
    },
    import_path=strip_pattern(r"^(?:pub(?:\([^)]*\))?\s+)?(?:use|extern crate)\s+|;$"),
    separator="::",
    names=("name", "type"),
    through=frozenset({"foreign_mod_item", "declaration_list"}),
    attached=frozenset({"attribute_item", "inner_attribute_item"}),
    body=frozenset({"block", "declaration_list", "field_declaration_list", "enum_variant_list", "macro_rule"}),
)
