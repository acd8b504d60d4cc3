"""Ruby: modules nest as members; ``attr_*``, ``include`` and constants are fields of a class."""

from adapter.outline.language import Language, rule, without

LANGUAGE = Language(
    name="Ruby",
    extensions=("rb", "rake", "gemspec"),
    aliases=("rb",),
    grammar="tree_sitter_ruby",
    rules={
        "call": (
            rule("imports", when=r"^(?:require|require_relative|load|autoload)\b"),
            rule("fields", when=r"^(?:attr_\w+|include|extend|prepend|alias_method|def_delegators?)\b"),
            rule("tests", when=r"^(?:RSpec\.)?(?:describe|context|it)\b"),
        ),
        "assignment": rule("consts", when=r"^[A-Z][\w:]*\s*="),
        "module": rule("mods", members=True),
        "class": rule("classes", members=True),
        "singleton_class": rule("classes", members=True),
        "method": rule("fns"),
        "singleton_method": rule("fns"),
    },
    import_path=without(r"""^(?:require_relative|require|load|autoload)\b[\s(]*|['")]"""),
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
