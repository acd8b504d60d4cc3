"""JavaScript: declarations, exported or not, functions in variables, CommonJS, and calls that define tests."""

import re
from collections.abc import Mapping, Sequence

from adapter.outline.language import Language, Rule, make_rule

_FROM = re.compile(r"""^(?:import|export)\s+(.*?)\s*\bfrom\s*['"](.*)['"]""", re.DOTALL)
_REQUIRED = re.compile(r"""^(?:const|let|var)\s+(.*?)\s*=\s*require\(\s*['"](.*)['"]""", re.DOTALL)
_MODULE = re.compile(r"""['"](.*)['"]""")
_TESTS = r"^(?:describe|it|test|suite|beforeEach|afterEach|beforeAll|afterAll)(?:\.\w+)*\("
FUNCTIONS = ("arrow_function", "function_expression", "generator_function")


def import_path(text: str) -> str:
    """``module name {names}``: what is taken from a module, after the module."""
    found = _FROM.match(text) or _REQUIRED.match(text)
    if found:
        return f"{found[2]} {found[1].removeprefix('type ')}"
    module = _MODULE.search(text)
    return module[1] if module else text


_OBJECT = make_rule("consts", value=("object",), when=r"\bfunction\b|=>|\)\s*\{", members=True)
"""An object with functions in it; others are values like any."""

_VARIABLE = (
    make_rule("imports", when=r"^(?:const|let|var)\s[^=]*=\s*require\("),
    make_rule("fns", value=FUNCTIONS),
    make_rule("classes", value=("class",), members=True),
    _OBJECT,
    make_rule("consts"),
)

RULES: Mapping[str, Rule | Sequence[Rule]] = {
    "import_statement": make_rule("imports"),
    "export_statement": (
        make_rule("imports", when=r"""^export\s+(?:type\s+)?[{*][^'"]*\bfrom\s*['"]"""),
        make_rule("fns", value=(*FUNCTIONS,)),
        make_rule("classes", value=("class",), members=True),
        _OBJECT,
        make_rule("consts", when=r"^export\s+(?:default\s+(?!async|function|class|abstract|interface)|=)"),
    ),
    "lexical_declaration": _VARIABLE,
    "variable_declaration": _VARIABLE,
    "class_declaration": make_rule("classes", members=True),
    "function_declaration": make_rule("fns"),
    "generator_function_declaration": make_rule("fns"),
    "assignment_expression": (
        make_rule("fns", value=FUNCTIONS),
        make_rule("classes", value=("class",), members=True),
        _OBJECT,
        make_rule("consts", when=r"^(?:(?:module\.)?exports\b|[\w.$]+\.prototype\.\w+\s*=)"),
    ),
    "call_expression": make_rule("tests", when=_TESTS),
    "method_definition": make_rule("fns"),
    "pair": make_rule("fns", value=FUNCTIONS),
    "field_definition": (make_rule("fns", value=FUNCTIONS), make_rule("fields")),
}
BODY = frozenset({"body", "object"})

LANGUAGE = Language(
    name="JavaScript",
    extensions=("js", "jsx", "mjs", "cjs"),
    aliases=("js",),
    grammar="tree_sitter_javascript",
    rules=RULES,
    import_path=import_path,
    wrappers=frozenset({"export_statement"}),
    through=frozenset(
        {
            *("expression_statement", "if_statement", "statement_block", "else_clause", "try_statement"),
            # a module wrapped in a function: (function () { ... })(), define([...], function () { ... })
            *("call_expression", "parenthesized_expression", "function_expression", "arrow_function", "arguments"),
        }
    ),
    body=BODY,
    names=("name", "left", "property", "key"),
)
