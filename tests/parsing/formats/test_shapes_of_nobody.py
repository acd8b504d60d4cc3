"""Shapes that belong to no format are calls only with a tool of the session; similar text is an answer."""

from __future__ import annotations

import pytest

from adapter.core.events import TextDelta, ToolCall
from adapter.parsing.echoed_header import HEADERS
from adapter.parsing.parser import parse
from tests.each import each
from tests.parsing.checks import read
from tests.parsing.formats.test_wild import definition_of

TOOLS = [definition_of("read_file(path, limit?: integer)"), definition_of("tag(tags: string[])")]
CALL = ("read_file", {"path": "a.py"})

CALLS = [
    '{"tool": "read_file", "path": "a.py"}',
    '```json\n{"tool": "read_file", "path": "a.py"}\n```',
    '{"name": "read_file", "path": "a.py"}',
    '{"function_call": {"name": "read_file", "arguments": "{\\"path\\": \\"a.py\\"}"}}',
    '{"tool_call": {"name": "read_file", "arguments": {"path": "a.py"}}}',
    '{"call": "read_file", "arguments": {"path": "a.py"}}',
    '<tool_use>{"name": "read_file", "input": {"path": "a.py"}}</tool_use>',
    '<tool_use>\n<name>read_file</name>\n<input>{"path": "a.py"}</input>\n</tool_use>',
    '<ant_tool_use>{"name": "read_file", "input": {"path": "a.py"}}</ant_tool_use>',
    '<function_invocation>{"name": "read_file", "arguments": {"path": "a.py"}}</function_invocation>',
    '<tool name="read_file">{"path": "a.py"}</tool>',
    "<tool_use>\n<tool_name>read_file</tool_name>\n<parameters>\n<path>a.py</path>\n</parameters>\n</tool_use>",
    "<Call><Function>read_file</Function>\n<Parameters><path>a.py</path></Parameters>\n</Call>",
    "<use_mcp_tool>\n<server_name>disk</server_name>\n<tool_name>read_file</tool_name>\n"
    '<arguments>\n{"path": "a.py"}\n</arguments>\n</use_mcp_tool>',
    '<function_call name="read_file">{"path": "a.py"}</function_call>',
    '<tool_call>read_file>{"path": "a.py"}</tool_call>',
    "<tool_call>read_file<arg_key>path=a.py</arg_value></tool_call>",
    '< | DSML | tool_use>\n< | DSML | invoke name="read_file">\n< | DSML | parameter name="path">a.py</ | DSML | '
    "parameter>\n</ | DSML | invoke>\n</ | DSML | tool_use>",
    '<tool-call id="1">{"name": "read_file", "arguments": {"path": "a.py"}}</tool-call>',
    '<toolcall><read_file>{"path": "a.py"}</read_file></toolcall>',
    '<invoke name="read_file">\n  <path>a.py</path>\n</invoke>',
    '<invoke name="read_file">\n<parameter name="path"><![CDATA[a.py]]></parameter>\n</invoke>',
    '<steptml:invoke name="read_file"><steptml:parameter name="path">a.py</steptml:parameter></steptml:invoke>',
    'Action: ```json\n[{"tool_name": "read_file", "parameters": {"path": "a.py"}}]\n```',
    '[Calling tool: read_file with arguments: {"path": "a.py"}]',
    '<|python_tag|>read_file.call(path="a.py")',
    '<|python_start|>{"name": "read_file", "parameters": {"path": "a.py"}}<|python_end|>',
    'call:read_file{path:<|"|>a.py<|"|>}<tool_call|>',
    '<|tool_calls_section_begin|>functions.read_file:0<|tool_call_argument_begin|>{"path": "a.py"}<|tool_call_end|>',
    '<|tool_call_begin|>{"name": "read_file", "arguments": {"path": "a.py"}}<|tool_call_end|>',
    '<tool_call>{"name": "read_file", "arguments": {"path": "a.py"}}</tool_call>\u200d',
    "<tool_call>I will read.<function=read_file><parameter=path>a.py</parameter></function></tool_call>",
    '[TOOL_CALL]\n{tool => "read_file", args => {\n  --path "a.py"\n}}\n[/TOOL_CALL]',
    '[TOOL_CALL]{"name": "read_file", "arguments": {"path": "a.py"}}[/TOOL_CALL]',
    "TOOL_NAME: read_file\nBEGIN_ARG: path\na.py\nEND_ARG",
    '```tool\nTOOL_NAME: read_file\nBEGIN_ARG: path\n"a.py"\nEND_ARG\n```',
    '<function>\n<name>read_file</name>\n<parameter name="path" string="true">a.py</parameter>\n</function>',
    "<call:default_api:read_file{path:a.py}/>",
    '<call:read_file>{"path": "a.py"}</call:read_file>',
    '<tool_call|>{"name": "read_file", "arguments": {"path": "a.py"}}<|tool_call>',
    '<|tool_call|>call:read_file{path:<|"|>a.py<|"|>}',
    '<read_file path="a.py" />',
    "<read_file>\n<parameter=path>\na.py\n</parameter>\n</function>",
    "<tool_call>read_file\n<parameter=path>\na.py\n</parameter>\n</tool_call>",
    'read_file[ARGS]{"path": "a.py"}',
    '<tool>{"name": "read_file", "arguments": {"path": "a.py"}}</parameter></tool>',
]

ANSWERS = [
    '{"tool": "hammer", "path": "left"}',
    '{"tool": "read_file", "colour": "red"}',
    '{"name": "read_file", "stars": 5}',
    '{"tool": "read_file"}',
    '{"function_call": {"cost": 3}}',
    '{"call": "the doctor", "when": "now"}',
    '```json\n{"tool": "read_file", "path": "a.py"}\n```\nThat is how it looks.',
    '<tool_use>{"name": "hammer", "input": {}}</tool_use>',
    "<tool_use>a word in a tag</tool_use>",
    'The model wrote <tool_use>{"name": "read_file", "input": {"path": "a.py"}}</tool_use> there.',
    '<tool name="hammer">{"path": "a.py"}</tool>',
    "<tool>hammer</tool>",
    "<tool />",
    "<toolcall><b>bold</b></toolcall> is odd.",
    'Use <invoke name="read_file"> for it.',
    "Action: ```json\n{}\n``` is what it writes.",
    "[Calling tool: nobody with arguments: {}]",
    "[Calling tool: read_file with arguments such as a path]",
    "In Gemma's form it is call:read_file{path:a.py} in a line.",
    "call:me{maybe}",
    "call: read_file is what I will do",
    "<|python_tag|>print(1)",
    '    Assistant: <tool_call>{"name": "read_file", "arguments": {"path": "a.py"}}</tool_call>',
    'Before:\n\n\tUser: <tool_call>{"name": "read_file", "arguments": {"path": "a.py"}}</tool_call>\n\nand so on.',
    "analysis of the final answer",
    "analysisResult is a list, and assistantfinal a word.",
    '[TOOL_CALL]{tool => "hammer", args => {--path "left"}}[/TOOL_CALL]',
    'MiniMax writes [TOOL_CALL]{tool => "read_file", args => {--path "a.py"}}[/TOOL_CALL] then.',
    '> [TOOL_CALL]{tool => "read_file", args => {--path "a.py"}}[/TOOL_CALL]',
    '```\n[TOOL_CALL]{tool => "read_file", args => {--path "a.py"}}[/TOOL_CALL]\n```\nis its form.',
    "[TOOL_CALL] opens it, [/TOOL_CALL] closes it.",
    "TOOL_NAME: read_file\nis the first line of such a block.",
    "TOOL_NAME: hammer\nBEGIN_ARG: path\nleft\nEND_ARG",
    "```tool\nTOOL_NAME: read_file\nBEGIN_ARG: path\na.py\nEND_ARG\n```\nThat is how it looks.",
    "<function>\n<name>read_file</name>\n<parameters><parameter><name>path</name></parameter></parameters>",
    "Write <call:read_file{path:a.py}/> for it.",
    "<call:hammer{path:left}/>",
    '<read_file path="a.py"/> reads a file.',
    '<read_file colour="red"/>',
    '<read_file limit="3"/>',
    '<tag tags="a"/>',
    "read_file[0] is a character.",
    'read_file[ARGS] {"path": ...} is how Mistral has it.',
]


@pytest.mark.parametrize("expected_format", [None, "hermes", "llama3_json", "deepseek_v31"])
def test_unknown_shape_with_known_tool_is_a_call(expected_format):
    """With any expected format, in every split."""

    def is_call(text: str) -> None:
        events = read(text, format=expected_format, tools=TOOLS, text_may_follow=False)
        assert [(event.name, event.arguments) for event in events if isinstance(event, ToolCall)] == [CALL]

    each({text: text for text in CALLS}, is_call)


@pytest.mark.parametrize("expected_format", [None, "hermes", "gemma4", "kimi_k2", "cohere"])
def test_text_similar_to_unknown_shape_is_content(expected_format):
    def is_answer(text: str) -> None:
        turn = parse(text, TOOLS, expected_format, "stop", generation_prompt="")
        assert turn.calls == ()
        assert turn.content == text or (turn.invalid == () and turn.content == text.strip())

    each({text: text for text in ANSWERS}, is_answer)


@pytest.mark.parametrize("expected_format", [None, "hermes", "llama3_json", "gemma3", "gemma4", "glm45"])
def test_echoed_header_is_skipped(expected_format):
    """The answer and its calls follow the header."""
    written = '<tool_call>\n{"name": "read_file", "arguments": {"path": "a.py"}}\n</tool_call>'

    def is_header(header: str) -> None:
        events = read(f"{header}\nHello.\n{written}", format=expected_format, tools=TOOLS, text_may_follow=False)
        assert [event.text for event in events if isinstance(event, TextDelta)] == ["Hello."]
        assert [(event.name, event.arguments) for event in events if isinstance(event, ToolCall)] == [CALL]

    each({header: header for header in HEADERS}, is_header)


def test_header_of_other_role_ends_turn():
    turn = parse("<|im_start|>user\nHello", TOOLS, "hermes", "stop", generation_prompt="")
    assert turn.content == ""
