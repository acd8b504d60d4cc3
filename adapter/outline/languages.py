"""The languages that can be outlined: one table for each."""

from __future__ import annotations

import re
from dataclasses import replace

from adapter.outline.language import Language, index_rules, make_rule, split_types, strip_pattern

__all__ = ["LANGUAGES", "find_extensions", "find_language"]

RUST = Language(
    name="Rust",
    extensions=("rs",),
    aliases=("rs",),
    grammar="tree_sitter_rust",
    rules=index_rules(
        make_rule("imports", "use_declaration extern_crate_declaration"),
        make_rule("tests", "mod_item", when=r"^mod tests?\b"),
        make_rule("mods", "mod_item", inside=True),
        make_rule("consts", "const_item static_item"),
        make_rule("types", "struct_item union_item enum_item", members=True),
        make_rule("types", "type_item associated_type"),
        make_rule("traits", "trait_item", members=True),
        make_rule("impls", "impl_item", members=True),
        make_rule("fns", "function_item function_signature_item"),
        make_rule("macros", "macro_definition"),
        make_rule("fields", "field_declaration enum_variant"),
    ),
    import_path=strip_pattern(r"^(?:pub(?:\([^)]*\))?\s+)?(?:use|extern crate)\s+|;$"),
    separator="::",
    names=("name", "type"),
    through=split_types("foreign_mod_item declaration_list"),
    attached=split_types("attribute_item inner_attribute_item"),
    body=split_types("block declaration_list field_declaration_list enum_variant_list macro_rule"),
)

# ----------------------------------------------------------------------------- Python

_PYTHON_FROM = re.compile(r"^from\s+(\S+)\s+import\s+\(?(.*?),?\s*\)?$", re.DOTALL)


def _format_python_import(text: str) -> str:
    match = _PYTHON_FROM.match(text)
    if not match:
        return text.removeprefix("import").strip()
    module, names = match.groups()
    return f"{module}{'' if module.endswith('.') else '.'}{{{names}}}"


PYTHON = Language(
    name="Python",
    extensions=("py", "pyi"),
    aliases=("py", "python3"),
    grammar="tree_sitter_python",
    rules=index_rules(
        make_rule("imports", "import_statement import_from_statement future_import_statement"),
        make_rule("consts", "assignment", when=r"^[\w, ]+?\s*[:=]"),
        make_rule("types", "type_alias_statement"),
        make_rule("classes", "class_definition", members=True),
        make_rule("fns", "function_definition"),
    ),
    import_path=_format_python_import,
    separator=".",
    wrappers=split_types("decorated_definition"),
    through=split_types(
        "expression_statement block with_statement for_statement while_statement if_statement elif_clause else_clause "
        "try_statement except_clause except_group_clause finally_clause"
    ),
)

# ----------------------------------------------------------- JavaScript and TypeScript

_JS_FROM = re.compile(r"""^(?:import|export)\s+(.*?)\s*\bfrom\s*['"](.*)['"]""", re.DOTALL)
_JS_REQUIRE = re.compile(r"""^(?:const|let|var)\s+(.*?)\s*=\s*require\(\s*['"](.*)['"]""", re.DOTALL)
_JS_MODULE = re.compile(r"""['"](.*)['"]""")
_JS_TESTS = r"^(?:describe|it|test|suite|beforeEach|afterEach|beforeAll|afterAll)(?:\.\w+)*\("
_JS_FUNCTIONS = "arrow_function function_expression generator_function"
_JS_VARIABLES = "lexical_declaration variable_declaration"
_JS_VALUES = f"export_statement {_JS_VARIABLES} assignment_expression"


def _format_js_import(text: str) -> str:
    """Return ``module name {names}``: the module first, then its imported names."""
    match = _JS_FROM.match(text) or _JS_REQUIRE.match(text)
    if match:
        return f"{match[2]} {match[1].removeprefix('type ')}"
    module = _JS_MODULE.search(text)
    return module[1] if module else text


_JS_RULES = (
    make_rule("imports", "import_statement"),
    make_rule("imports", "export_statement", when=r"""^export\s+(?:type\s+)?[{*][^'"]*\bfrom\s*['"]"""),
    make_rule("imports", _JS_VARIABLES, when=r"^(?:const|let|var)\s[^=]*=\s*require\("),
    make_rule("fns", f"{_JS_VALUES} pair field_definition", value=_JS_FUNCTIONS),
    make_rule("classes", _JS_VALUES, value="class", members=True),
    # an object with functions in it; others are plain values
    make_rule("consts", _JS_VALUES, value="object", when=r"\bfunction\b|=>|\)\s*\{", members=True),
    make_rule(
        "consts",
        "export_statement",
        when=r"^export\s+(?:default\s+(?!async|function|class|abstract|interface)|=)",
    ),
    make_rule("consts", "assignment_expression", when=r"^(?:(?:module\.)?exports\b|[\w.$]+\.prototype\.\w+\s*=)"),
    make_rule("consts", _JS_VARIABLES),
    make_rule("classes", "class_declaration", members=True),
    make_rule("fns", "function_declaration generator_function_declaration method_definition"),
    make_rule("tests", "call_expression", when=_JS_TESTS),
    make_rule("fields", "field_definition"),
)

JAVASCRIPT = Language(
    name="JavaScript",
    extensions=("js", "jsx", "mjs", "cjs"),
    aliases=("js",),
    grammar="tree_sitter_javascript",
    rules=index_rules(*_JS_RULES),
    import_path=_format_js_import,
    wrappers=split_types("export_statement"),
    through=split_types(
        "expression_statement if_statement statement_block else_clause try_statement "
        # a module wrapped in a function: (function () { ... })(), define([...], function () { ... })
        "call_expression parenthesized_expression function_expression arrow_function arguments"
    ),
    body=split_types("body object"),
    names=("name", "left", "property", "key"),
)

TYPESCRIPT = replace(
    JAVASCRIPT,
    name="TypeScript",
    extensions=("ts", "mts", "cts"),
    aliases=("ts",),
    grammar="tree_sitter_typescript",
    loader="language_typescript",
    rules=index_rules(
        *_JS_RULES,
        make_rule("types", "interface_declaration enum_declaration", members=True),
        make_rule("types", "type_alias_declaration"),
        make_rule("classes", "abstract_class_declaration", members=True),
        make_rule("mods", "internal_module module", inside=True),
        make_rule("fns", "function_signature method_signature abstract_method_signature"),
        make_rule("fns", "construct_signature call_signature"),
        make_rule("fns", "public_field_definition", value=_JS_FUNCTIONS),
        make_rule("fields", "public_field_definition index_signature property_signature enum_assignment"),
        make_rule("fields", "property_identifier", variant=True),
    ),
    wrappers=split_types("export_statement ambient_declaration"),
    attached=split_types("decorator"),
    dropped=split_types("decorator"),
)

TSX = replace(TYPESCRIPT, name="TSX", extensions=("tsx",), aliases=("tsx",), loader="language_tsx")

# --------------------------------------------------------------------------------- Go


def _go_import_path(text: str) -> str:
    alias, _, path = text.rpartition(" ")
    return path.strip('"`') + (f" as {alias}" if alias else "")


GO = Language(
    name="Go",
    extensions=("go",),
    aliases=("golang",),
    grammar="tree_sitter_go",
    rules=index_rules(
        make_rule("mods", "package_clause"),
        make_rule("imports", "import_spec"),
        make_rule("consts", "const_spec var_spec"),
        make_rule("types", "type_spec", when=r"^[^\n]*?\b(?:struct|interface)\s*\{", members=True),
        make_rule("types", "type_spec type_alias"),
        make_rule("fns", "method_declaration function_declaration method_elem"),
        make_rule("fields", "field_declaration type_elem"),
    ),
    import_path=_go_import_path,
    separator="/",
    wrappers=split_types("type_declaration"),
    through=split_types(
        "import_declaration import_spec_list const_declaration var_declaration var_spec_list struct_type interface_type"
    ),
    body=split_types("body field_declaration_list interface_type"),
)

# --------------------------------------------------------------------------- C and C++

_ARGUMENTS = rb"\((?:[^()\n]|\([^()\n]*\))*\)"
_MACRO = rb"[A-Z_][A-Z0-9_]{3,}(?:" + _ARGUMENTS + rb")?"
_MACROS = re.compile(
    # a macro instead of a type, perhaps with attributes: API(void) f(int);
    rb"^(?P<type>[A-Z_][A-Z0-9_]{3,}\([A-Za-z_][^()\n\"]*\)(?:\s+%(macro)s){0,3})(?=\s+\w+[ \t]*\()"
    # alone on a line, and not the type of the next declaration: NAMESPACE_BEGIN, __BEGIN_DECLS
    rb"|^[ \t]*([A-Z_][A-Z0-9_]{3,}(?:%(arguments)s|(?!\s+\w+[ \t]*\()))[ \t]*\r?$(?!\s+[{<&|.?:=+,)-])"
    # instead of private: or public:
    rb"|^[ \t]*([A-Z_][A-Z0-9_]{3,}:)[ \t]*\r?$"
    # after a declaration, or between its type and its name: int f(void) HIDDEN; int WINAPI g(void);
    rb"|[)\]]\s*(%(macro)s)(?=\s*[;{])"
    rb"|^[\w \t*]*?(?:\b(?:void|bool|char|short|int|long|float|double|\w+_t)|\*)[ \t]*"
    rb"[ \t\r\n*]([A-Z_][A-Z0-9_]{3,})\s+(?=\w+\s*\()"
    # before the name of a class, or before a declaration
    rb"|\b(?:class|struct|enum|union)\s+([A-Z_][A-Z0-9_]{2,}(?:%(arguments)s)?)\s+(?=\w+\s*(?:final\s*)?[:{])"
    rb"|^(?:[ \t]*)([A-Z_][A-Z0-9_]*_(?:API|EXPORT|EXTERN|DLL|PUBLIC|PRIVATE|INLINE|FORCEINLINE)\b)"
    % {b"macro": _MACRO, b"arguments": _ARGUMENTS},
    re.MULTILINE,
)
_C_RULES = (
    make_rule("imports", "preproc_include"),
    make_rule("macros", "preproc_def", when=r"\A#\s*\w+\s+\S+[ \t]+\S", variant=True),
    make_rule("macros", "preproc_function_def"),
    make_rule("fns", "function_definition"),
    make_rule("types", "declaration", when=r"^(?:typedef\s+)?(?:struct|union|enum|class)\b[^;=()]*\{", members=True),
    make_rule("fns", "declaration", declarator="function_declarator"),
    make_rule("consts", "declaration"),
    make_rule("types", "type_definition", when=r"\{", members=True),
    make_rule("types", "type_definition"),
    make_rule("types", "struct_specifier union_specifier enum_specifier", members=True),
    make_rule("fields", "field_declaration"),
    make_rule("fields", "enumerator", variant=True),
)

C = Language(
    name="C",
    extensions=("c", "h"),
    grammar="tree_sitter_c",
    rules=index_rules(*_C_RULES),
    import_path=strip_pattern(r"^#\s*(?:include|import)\s*"),
    through=split_types(
        "preproc_if preproc_ifdef preproc_else preproc_elif preproc_elifdef linkage_specification declaration_list"
    ),
    names=("name", "declarator"),
    prefix="#define ",
    blanked=_MACROS,
)

CPP = replace(
    C,
    name="C++",
    extensions=("cpp", "cc", "cxx", "hpp", "hxx", "hh", "ipp", "tpp"),
    aliases=("cpp", "c++", "cxx"),
    grammar="tree_sitter_cpp",
    rules=index_rules(
        make_rule("imports", "using_declaration", when=r"^using\s+namespace\b"),
        make_rule("types", "alias_declaration concept_definition"),
        make_rule("mods", "namespace_definition", inside=True),
        make_rule("classes", "class_specifier struct_specifier", members=True),
        make_rule("types", "field_declaration", when=r"^(?:struct|union|enum|class)\b[^;=()]*\{", members=True),
        make_rule("fns", "field_declaration", declarator="function_declarator"),
        *_C_RULES,
    ),
    import_path=strip_pattern(r"^#\s*(?:include|import)\s*|;$"),
    wrappers=split_types("template_declaration friend_declaration"),
    body=split_types("body field_initializer_list default_method_clause delete_method_clause"),
)

# ------------------------------------------------------------------- Java, C#, Kotlin

JAVA = Language(
    name="Java",
    extensions=("java",),
    grammar="tree_sitter_java",
    rules=index_rules(
        make_rule("mods", "package_declaration"),
        make_rule("imports", "import_declaration"),
        make_rule("classes", "class_declaration record_declaration", members=True),
        make_rule("types", "enum_declaration", members=True),
        make_rule("traits", "interface_declaration annotation_type_declaration", members=True),
        make_rule("fields", "field_declaration constant_declaration"),
        make_rule("fields", "enum_constant", variant=True),
        make_rule("fns", "method_declaration constructor_declaration compact_constructor_declaration"),
        make_rule("fns", "annotation_type_element_declaration"),
    ),
    import_path=strip_pattern(r"^import\s+(?:static\s+)?|\s*;$"),
    separator=".",
    through=split_types("enum_body_declarations"),
    dropped=split_types("annotation marker_annotation"),
)

CSHARP = Language(
    name="C#",
    extensions=("cs",),
    aliases=("csharp", "c-sharp"),
    grammar="tree_sitter_c_sharp",
    rules=index_rules(
        make_rule("imports", "using_directive"),
        make_rule("mods", "namespace_declaration file_scoped_namespace_declaration", inside=True),
        make_rule("classes", "class_declaration record_declaration", members=True),
        make_rule("types", "struct_declaration enum_declaration", members=True),
        make_rule("types", "delegate_declaration"),
        make_rule("traits", "interface_declaration", members=True),
        make_rule("fields", "field_declaration event_field_declaration event_declaration property_declaration"),
        make_rule("fields", "enum_member_declaration"),
        make_rule("fns", "indexer_declaration method_declaration constructor_declaration destructor_declaration"),
        make_rule("fns", "operator_declaration conversion_operator_declaration local_function_statement"),
    ),
    import_path=strip_pattern(r"^(?:global\s+)?using\s+(?:static\s+)?|\s*;$"),
    separator=".",
    through=split_types("global_statement preproc_if preproc_else preproc_elif declaration_list"),
    body=split_types("body accessor_list accessors arrow_expression_clause constructor_initializer"),
    dropped=split_types("attribute_list"),
    names=("name", "declarator", "parameters"),
)

KOTLIN = Language(
    name="Kotlin",
    extensions=("kt", "kts"),
    aliases=("kt",),
    grammar="tree_sitter_kotlin",
    rules=index_rules(
        make_rule("mods", "package_header"),
        make_rule("imports", "import"),
        make_rule("consts", "property_declaration"),
        make_rule("types", "type_alias"),
        make_rule("traits", "class_declaration", when=r"^(?:[\w@()\"]+\s+)*?(?:fun\s+)?interface\b", members=True),
        make_rule("types", "class_declaration", when=r"^(?:[\w@()\"]+\s+)*?enum\s+class\b", members=True),
        make_rule("classes", "class_declaration object_declaration companion_object", members=True),
        make_rule("fns", "secondary_constructor function_declaration"),
        make_rule("fields", "enum_entry", variant=True),
    ),
    import_path=strip_pattern(r"^import\s+"),
    separator=".",
    body=split_types("class_body enum_class_body function_body getter setter block property_delegate"),
    dropped=split_types("annotation"),
    names=("name", "type"),
)

# --------------------------------------------------------------- Ruby, PHP, Bash, Lua

RUBY = Language(
    name="Ruby",
    extensions=("rb", "rake", "gemspec"),
    aliases=("rb",),
    grammar="tree_sitter_ruby",
    rules=index_rules(
        make_rule("imports", "call", when=r"^(?:require|require_relative|load|autoload)\b"),
        make_rule("fields", "call", when=r"^(?:attr_\w+|include|extend|prepend|alias_method|def_delegators?)\b"),
        make_rule("tests", "call", when=r"^(?:RSpec\.)?(?:describe|context|it)\b"),
        make_rule("consts", "assignment", when=r"^[A-Z][\w:]*\s*="),
        make_rule("mods", "module", members=True),
        make_rule("classes", "class singleton_class", members=True),
        make_rule("fns", "method singleton_method"),
    ),
    import_path=strip_pattern(r"""^(?:require_relative|require|load|autoload)\b[\s(]*|['")]"""),
    separator="/",
    through=split_types(
        "begin rescue ensure if unless then else if_modifier unless_modifier body_statement call do_block block"
    ),
    body=split_types("body body_statement"),
    names=("name", "left"),
)

PHP = Language(
    name="PHP",
    extensions=("php", "phtml"),
    grammar="tree_sitter_php",
    loader="language_php",
    rules=index_rules(
        make_rule("mods", "namespace_definition", inside=True),
        make_rule("imports", "namespace_use_declaration"),
        make_rule("consts", "const_declaration"),
        make_rule("consts", "function_call_expression", when=r"^define\s*\("),
        make_rule("classes", "class_declaration", members=True),
        make_rule("traits", "interface_declaration trait_declaration", members=True),
        make_rule("types", "enum_declaration", members=True),
        make_rule("fields", "use_declaration property_declaration enum_case"),
        make_rule("fns", "method_declaration function_definition"),
    ),
    import_path=strip_pattern(r"^use\s+(?:function\s+|const\s+)?\\?|\s*;$"),
    separator="\\",
    through=split_types("expression_statement compound_statement if_statement else_clause colon_block"),
    dropped=split_types("attribute_list"),
)

BASH = Language(
    name="Bash",
    extensions=("sh", "bash", "zsh"),
    aliases=("shell", "sh"),
    grammar="tree_sitter_bash",
    rules=index_rules(
        make_rule("imports", "command", when=r"^(?:source|\.)\s"),
        make_rule("consts", "command", when=r"^alias\s"),
        make_rule("consts", "declaration_command", when="="),
        make_rule("consts", "variable_assignment", when=r"^[A-Z][A-Z0-9_]*="),
        make_rule("fns", "function_definition"),
    ),
    import_path=strip_pattern(r"^(?:source|\.)\s+"),
    through=split_types(
        "if_statement elif_clause else_clause list subshell compound_statement case_statement case_item "
        "while_statement for_statement do_group redirected_statement"
    ),
)

_LUA_ASSIGNMENTS = "variable_declaration assignment_statement"

LUA = Language(
    name="Lua",
    extensions=("lua",),
    grammar="tree_sitter_lua",
    rules=index_rules(
        make_rule("imports", _LUA_ASSIGNMENTS, when=r"^(?:local\s+)?[^=]*=\s*require\b"),
        make_rule("imports", "function_call", when=r"^require\b"),
        make_rule("fns", f"{_LUA_ASSIGNMENTS} field", value="function_definition"),
        make_rule(
            "consts", _LUA_ASSIGNMENTS, when=r"\bfunction\s*\(", value="table_constructor function_call", members=True
        ),
        make_rule("consts", _LUA_ASSIGNMENTS),
        make_rule("fns", "function_declaration"),
    ),
    import_path=strip_pattern(r"""^.*?\brequire\b[\s(]*['"]|['"].*$"""),
    separator=".",
    through=split_types(
        "if_statement do_statement block else_statement elseif_statement return_statement expression_list "
        # function_definition: a module that returns the function that creates it
        "table_constructor arguments function_call function_definition"
    ),
    body=split_types("body table_constructor arguments"),
)

# --------------------------------------------------------------------- Swift and Scala

SWIFT = Language(
    name="Swift",
    extensions=("swift",),
    grammar="tree_sitter_swift",
    rules=index_rules(
        make_rule("imports", "import_declaration"),
        make_rule("consts", "property_declaration"),
        make_rule("types", "typealias_declaration"),
        make_rule("impls", "class_declaration", when=r"^(?:[\w@()]+\s+)*?extension\b", members=True),
        make_rule(
            "types", "class_declaration", when=r"^(?:[\w@()]+\s+)*?(?:struct|(?:indirect\s+)?enum)\b", members=True
        ),
        make_rule("classes", "class_declaration", members=True),
        make_rule("traits", "protocol_declaration", members=True),
        make_rule("fns", "function_declaration init_declaration deinit_declaration subscript_declaration"),
        make_rule("fns", "protocol_function_declaration"),
        make_rule("fields", "protocol_property_declaration associatedtype_declaration enum_entry"),
        make_rule("macros", "macro_declaration"),
    ),
    import_path=strip_pattern(r"^(?:@\w+\s+)*import\s+(?:(?:struct|class|enum|protocol|func|var|let|typealias)\s+)?"),
    separator=".",
    body=split_types("body computed_value computed_property willset_didset_block"),
    dropped=split_types("attribute"),
    blanked=re.compile(rb"^[ \t]*(#(?:if|elseif|else|endif)\b[^\n]*)", re.MULTILINE),  # not parsed inside a switch
)

SCALA = Language(
    name="Scala",
    extensions=("scala", "sc"),
    grammar="tree_sitter_scala",
    rules=index_rules(
        make_rule("mods", "package_clause", inside=True),
        make_rule("imports", "import_declaration"),
        make_rule("consts", "val_definition var_definition"),
        make_rule("fields", "val_declaration var_declaration full_enum_case"),
        make_rule("types", "type_definition"),
        make_rule("classes", "class_definition object_definition package_object", members=True),
        make_rule("traits", "trait_definition", members=True),
        make_rule("types", "enum_definition", members=True),
        make_rule("impls", "given_definition extension_definition", members=True),
        make_rule("fields", "simple_enum_case", variant=True),
        make_rule("fns", "function_definition function_declaration"),
    ),
    import_path=strip_pattern(r"^import\s+"),
    separator=".",
    through=split_types("enum_case_definitions template_body"),
    dropped=split_types("annotation"),
)

# ------------------------------------------------------------------------------ lookup

LANGUAGES: tuple[Language, ...] = (
    RUST, PYTHON, TYPESCRIPT, TSX, JAVASCRIPT, GO, JAVA, C, CPP, CSHARP, RUBY, PHP, SWIFT, KOTLIN, SCALA, BASH, LUA,
)  # fmt: skip

_BY_EXTENSION = {extension: language for language in LANGUAGES for extension in language.extensions}

_IS_CPP = re.compile(
    r"^[ \t]*(?:class\s+(?:\w+\s+)?\w+\s*(?:final\s*)?[:;{]|(?:inline\s+)?namespace(?:\s+[\w:]+)?\s*\{|template\s*<"
    r"|using\s+(?:namespace\s+)?[\w:]+\s*[=;]|(?:public|private|protected):)",
    re.MULTILINE,
)
_IS_FLOW = re.compile(r"^[\s/*]*@flow\b", re.MULTILINE)


def find_language(path: str, text: str = "") -> Language | None:
    """Return the language of a file by its extension, in any letter case; None if the extension is unknown.

    ``text`` decides if an extension is ambiguous: C++ in ``.h``, and Flow types in ``.js``, which parse best as TSX.
    """
    _, dot, extension = path.rpartition("/")[2].rpartition(".")
    language = _BY_EXTENSION.get(extension.lower()) if dot else None
    if language is C and _IS_CPP.search(text):
        return CPP
    if language is JAVASCRIPT and _IS_FLOW.search(text[:2_000]):
        return TSX
    return language


def find_extensions(file_type: str) -> frozenset[str]:
    """Return the file extensions, without dots, for a language name or an extension (``.py``, ``*.py``)."""
    name = file_type.strip().lower().removeprefix("*").removeprefix(".")
    extensions = {
        extension
        for language in LANGUAGES
        if name == language.name.lower() or name in language.aliases
        for extension in language.extensions
    }
    return frozenset(extensions or {name})
