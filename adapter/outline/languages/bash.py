"""Bash: functions wherever they are defined; declared and upper-case variables; what is sourced."""

from adapter.outline.language import Language, make_rule, strip_pattern

LANGUAGE = Language(
    name="Bash",
    extensions=("sh", "bash", "zsh"),
    aliases=("shell", "sh"),
    grammar="tree_sitter_bash",
    rules={
        "command": (
            make_rule("imports", when=r"^(?:source|\.)\s"),
            make_rule("consts", when=r"^alias\s"),
        ),
        "declaration_command": make_rule("consts", when="="),
        "variable_assignment": make_rule("consts", when=r"^[A-Z][A-Z0-9_]*="),
        "function_definition": make_rule("fns"),
    },
    import_path=strip_pattern(r"^(?:source|\.)\s+"),
    through=frozenset(
        {
            *("if_statement", "elif_clause", "else_clause", "list", "subshell", "compound_statement"),
            *("case_statement", "case_item", "while_statement", "for_statement", "do_group", "redirected_statement"),
        }
    ),
)
