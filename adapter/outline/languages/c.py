"""C: declarations behind preprocessor conditions count as if the conditions were not there."""

import re
from collections.abc import Mapping, Sequence

from adapter.outline.language import Language, Rule, make_rule, strip_pattern

RULES: Mapping[str, Rule | Sequence[Rule]] = {
    "preproc_include": make_rule("imports"),
    "preproc_def": make_rule("macros", when=r"\A#\s*\w+\s+\S+[ \t]+\S", variant=True),
    "preproc_function_def": make_rule("macros"),
    "function_definition": make_rule("fns"),
    "declaration": (
        make_rule("types", when=r"^(?:typedef\s+)?(?:struct|union|enum|class)\b[^;=()]*\{", members=True),
        make_rule("fns", declarator="function_declarator"),
        make_rule("consts"),
    ),
    "type_definition": (make_rule("types", when=r"\{", members=True), make_rule("types")),
    "struct_specifier": make_rule("types", members=True),
    "union_specifier": make_rule("types", members=True),
    "enum_specifier": make_rule("types", members=True),
    "field_declaration": make_rule("fields"),
    "enumerator": make_rule("fields", variant=True),
}
THROUGH = frozenset(
    {
        *("preproc_if", "preproc_ifdef", "preproc_else", "preproc_elif", "preproc_elifdef"),
        *("linkage_specification", "declaration_list"),
    }
)
_ARGUMENTS = rb"\((?:[^()\n]|\([^()\n]*\))*\)"
_MACRO = rb"[A-Z_][A-Z0-9_]{3,}(?:" + _ARGUMENTS + rb")?"
MACROS = re.compile(
    # instead of a type, perhaps with attributes: API(void) f(int);
    rb"^(?P<type>[A-Z_][A-Z0-9_]{3,}\([A-Za-z_][^()\n\"]*\)(?:\s+%(macro)s){0,3})(?=\s+\w+[ \t]*\()"
    # alone on its line, but not the type of what follows: NAMESPACE_BEGIN, __BEGIN_DECLS
    rb"|^[ \t]*([A-Z_][A-Z0-9_]{3,}(?:%(arguments)s|(?!\s+\w+[ \t]*\()))[ \t]*\r?$(?!\s+[{<&|.?:=+,)-])"
    # instead of private: or public:
    rb"|^[ \t]*([A-Z_][A-Z0-9_]{3,}:)[ \t]*\r?$"
    # behind a declaration, or between its type and name: int f(void) HIDDEN; int WINAPI g(void);
    rb"|[)\]]\s*(%(macro)s)(?=\s*[;{])"
    rb"|^[\w \t*]*?(?:\b(?:void|bool|char|short|int|long|float|double|\w+_t)|\*)[ \t]*"
    rb"[ \t\r\n*]([A-Z_][A-Z0-9_]{3,})\s+(?=\w+\s*\()"
    # before the name of a class, or a declaration
    rb"|\b(?:class|struct|enum|union)\s+([A-Z_][A-Z0-9_]{2,}(?:%(arguments)s)?)\s+(?=\w+\s*(?:final\s*)?[:{])"
    rb"|^(?:[ \t]*)([A-Z_][A-Z0-9_]*_(?:API|EXPORT|EXTERN|DLL|PUBLIC|PRIVATE|INLINE|FORCEINLINE)\b)"
    % {b"macro": _MACRO, b"arguments": _ARGUMENTS},
    re.MULTILINE,
)

LANGUAGE = Language(
    name="C",
    extensions=("c", "h"),
    grammar="tree_sitter_c",
    rules=RULES,
    import_path=strip_pattern(r"^#\s*(?:include|import)\s*"),
    through=THROUGH,
    body=frozenset({"body"}),
    names=("name", "declarator"),
    prefix="#define ",
    blanked=MACROS,
)
