"""Ruby: modules nest as members; ``attr_*``, ``include`` and constants are fields of a class."""

from adapter.outline.language import Language, make_rule, strip_pattern

LANGUAGE = Language(
    name="Ruby",
    extensions=("rb", "rake", "gemspec"),
    aliases=("rb",),
    grammar="tree_sitter_ruby",
    rules={
        "call": (
            make_rule("imports", when=r"^(?:require|require_relative|load|autoload)\b"),
            make_rule("fields", when=r"^(?:attr_\w+|include|extend|prepend|alias_method|def_delegators?)\b"),
            make_rule("tests", when=r"^(?:RSpec\.)?(?:describe|context|it)\b"),
        ),
        "assignment": make_rule("consts", when=r"^[A-Z][\w:]*\s*="),
        "module": make_rule("mods", members=True),
        "class": make_rule("classes", members=True),
        "singleton_class": make_rule("classes", members=True),
        "method": make_rule("fns"),
        "singleton_method": make_rule("fns"),
    },
    import_path=strip_pattern(r"""^(?:require_relative|require|load|autoload)\b[\s(]*|['")]"""),
    separator="/",
    through=frozenset(
        {
            "begin",
            "rescue",
            "ensure",
            "if",
            "unless",
            "then",
            "else",
            "if_modifier",
            "unless_modifier",
            "body_statement",
        }
        | {"call", "do_block", "block"}
    ),
    body=frozenset({"body", "body_statement"}),
    names=("name", "left"),
)
