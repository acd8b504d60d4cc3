"""Swift: extensions stand among the impls; a property's computed value is its body. Declarations behind
``#if`` count as if the condition were not there: inside a ``switch`` the grammar does not know it."""

import re

from adapter.outline.language import Language, rule, without

LANGUAGE = Language(
    name="Swift",
    extensions=("swift",),
    grammar="tree_sitter_swift",
    rules={
        "import_declaration": rule("imports"),
        "property_declaration": rule("consts"),
        "typealias_declaration": rule("types"),
        "class_declaration": (
            rule("impls", when=r"^(?:[\w@()]+\s+)*?extension\b", members=True),
            rule("types", when=r"^(?:[\w@()]+\s+)*?(?:struct|(?:indirect\s+)?enum)\b", members=True),
            rule("classes", members=True),
        ),
        "protocol_declaration": rule("traits", members=True),
        "function_declaration": rule("fns"),
        "init_declaration": rule("fns"),
        "deinit_declaration": rule("fns"),
        "subscript_declaration": rule("fns"),
        "protocol_function_declaration": rule("fns"),
        "protocol_property_declaration": rule("fields"),
        "associatedtype_declaration": rule("fields"),
        "enum_entry": rule("fields"),
        "macro_declaration": rule("macros"),
    },
    import_path=without(r"^(?:@\w+\s+)*import\s+(?:(?:struct|class|enum|protocol|func|var|let|typealias)\s+)?"),
    separator=".",
    body=frozenset({"body", "computed_value", "computed_property", "willset_didset_block"}),
    dropped=frozenset({"attribute"}),
    blanked=re.compile(rb"^[ \t]*(#(?:if|elseif|else|endif)\b[^\n]*)", re.MULTILINE),
)
