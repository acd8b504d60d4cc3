"""The tools' definitions match documented.toml: names, parameters, types, requirements and defaults."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest

from adapter.dialects import get_dialect
from adapter.prompting.system_prompt import system_prompt
from adapter.tools.tool import Tool

DOCUMENTED: dict[str, dict[str, list[str]]] = tomllib.loads(
    Path(__file__).with_name("documented.toml").read_text(encoding="utf-8")
)
SECOND_NAMES = {"blade": ["create_file", "apply_patch", "list_dir", "glob", "rg"]}
UNDOCUMENTED = {"apply_edit": {"start_line", "end_line"}}
"""Parameters that are shown although the document has them only in the list of patches."""

every_tool = pytest.mark.parametrize(
    ("dialect", "name"), [(dialect, name) for dialect, tools in DOCUMENTED.items() for name in tools]
)
every_dialect = pytest.mark.parametrize("dialect", DOCUMENTED)


def find_tool(dialect: str, name: str) -> Tool:
    return get_dialect(dialect).tools[name]


def describe(tool: Tool, parameter: str) -> str:
    """Return the parameter as documented.toml writes it."""
    schema = tool.properties[parameter]
    assert schema.get("description"), f"{tool.name}: describe {parameter!r} with Parameter(...)"
    if parameter in tool.required:
        assert "default" not in schema
        return f"{parameter}: {schema['type']}"
    default = schema.get("default")
    return f"{parameter}: {schema['type']}" + ("?" if default is None else f" = {json.dumps(default)}")


@every_dialect
def test_all_documented_tools_are_there_in_order(dialect):
    """Every name of the four documents, second names too, and no others.

    C001, C008, C015, C027, C035, C039, C045, C049, C052, C057, C060, C066, C071, C075, C079, C086; C088, C092, C097,
    C103, C106, C111, C115; C147, C150, C155, C161, C164, C169, C174, C177, C182, C186, C191, C195, C198, C204, C207,
    C212, C214, C219; C221, C227, C229, C234, C237, C241, C252, C255, C258, C261, C264, C266, C270, C275, C279, C283,
    C287, C292, C294, C297, C300, C302, C304, C306.
    """
    found = get_dialect(dialect)
    assert found.list_tool_names() == list(DOCUMENTED[dialect])
    further = [name for name in found.list_tool_names(aliases=True) if name not in DOCUMENTED[dialect]]
    assert further == SECOND_NAMES.get(dialect, [])


@pytest.mark.parametrize(
    ("spelling", "name"),
    [
        ("Zaguan-Blade", "blade"),
        ("Maki", "maki"),
        ("proto-cli", "proto"),
        ("protoCLI", "proto"),
        ("ProxyAI", "proxyai"),
    ],
)
def test_dialects_have_common_aliases(spelling, name):
    assert get_dialect(spelling) is get_dialect(name)


@every_tool
def test_parameters_are_the_documented_ones(dialect, name):
    """In their own spelling and order, with type, requirement and default, and no others.

    C002, C009 to C011, C016 to C025, C028 to C032, C036, C037, C040 to C043, C046, C047, C050, C053 to C055, C058,
    C061 to C064, C067, C072, C073, C076, C077, C080 to C084; C091, C093, C094, C095, C098, C099, C100, C104, C105,
    C107, C108, C109, C110, C112, C113, C116, C117, C118, C119; C148, C151, C152, C153, C154, C156, C157, C158, C162,
    C163, C165, C166, C167, C168, C170, C171, C175, C176, C178, C179, C180, C183, C187, C192, C193, C196, C199, C200,
    C201, C205, C206, C208, C209, C210, C211, C213, C215, C216, C217, C220; C228, C230 to C233, C235, C236, C238 to
    C240, C242 to C245, C253, C254, C256, C257, C259, C260, C262, C265, C267, C268, C271 to C273, C276 to C278, C280 to
    C282, C284, C285, C288 to C290, C295, C296, C298, C299, C303, C305, C307, C308.
    """
    tool = find_tool(dialect, name)
    shown = [describe(tool, each) for each in tool.properties if each not in UNDOCUMENTED.get(name, ())]
    assert shown == DOCUMENTED[dialect][name]


@every_tool
def test_examples_are_valid_and_complete(dialect, name):
    """The example shown to a model passes the tool's own checks."""
    tool = find_tool(dialect, name)
    assert tool.example is not None
    assert set(tool.required) <= set(tool.example) <= set(tool.properties)
    assert tool.validate is not None
    tool.validate(tool.example).to_operation()


@every_dialect
def test_no_name_means_two_tools(dialect):
    """X18: names, second names and aliases are unique in the dialect."""
    names = [name for tool in get_dialect(dialect).tools.values() for name in (tool.name, *tool.aliases)]
    assert len(names) == len(set(names))


@every_tool
def test_no_argument_alias_means_two_arguments(dialect, name):
    """X14: and none hides a parameter of the same tool."""
    tool = find_tool(dialect, name)
    aliases = [alias for names in tool.argument_aliases.values() for alias in names]
    assert len(aliases) == len(set(aliases))
    assert not set(aliases) & set(tool.properties)


@every_dialect
def test_schemas_are_simple(dialect):
    """No references, titles or null alternatives, which small grammars do not support."""
    text = json.dumps([tool.parameters for tool in get_dialect(dialect).tools.values()])
    for keyword in ("$ref", "$defs", '"title": "', "anyOf", '"null"', "x-required"):
        assert keyword not in text


@pytest.mark.parametrize("dialect", ["maki", "proto"])
@pytest.mark.parametrize("style", ["compact", "full", "trained", "small"])
def test_prompts_name_every_tool(dialect, style):
    """C088, C147: in each style. `tests/prompting/test_system_prompt.py` tests blade in each format."""
    prompt = system_prompt(dialect, "hermes", style, tools=get_dialect(dialect).tools)
    assert all(name in prompt for name in DOCUMENTED[dialect])
