"""Swift: extensions stand among the impls; a property's computed value is its body. Declarations behind
``#if`` count as if the condition were not there: inside a ``switch`` the grammar does not know it."""

import re

from adapter.outline.language import Language, make_rule, strip_pattern

LANGUAGE = Language(
    name="Swift",
    extensions=("swift",),
    grammar="tree_sitter_swift",
    rules={
        "import_declaration": make_rule("imports"),
        "property_declaration": make_rule("consts"),
        "typealias_declaration": make_rule("types"),
        "class_declaration": (
            make_rule("impls", when=r"^(?:[\w@()]+\s+)*?extension\b", members=True),
            make_rule("types", when=r"^(?:[\w@()]+\s+)*?(?:struct|(?:indirect\s+)?enum)\b", members=True),
            make_rule("classes", members=True),
        ),
        "protocol_declaration": make_rule("traits", members=True),
        "function_declaration": make_rule("fns"),
        "init_declaration": make_rule("fns"),
        "deinit_declaration": make_rule("fns"),
        "subscript_declaration": make_rule("fns"),
        "protocol_function_declaration": make_rule("fns"),
        "protocol_property_declaration": make_rule("fields"),
        "associatedtype_declaration": make_rule("fields"),
        "enum_entry": make_rule("fields"),
        "macro_declaration": make_rule("macros"),
    },
    import_path=strip_pattern(r"^(?:@\w+\s+)*import\s+(?:(?:struct|class|enum|protocol|func|var|let|typealias)\s+)?"),
    separator=".",
    body=frozenset({"body", "computed_value", "computed_property", "willset_didset_block"}),
    dropped=frozenset({"attribute"}),
    blanked=re.compile(rb"^[ \t]*(#(?:if|elseif|else|endif)\b[^\n]*)", re.MULTILINE),
)
