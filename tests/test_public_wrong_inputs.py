"""A wrong argument to a public function or class is a UsageError that names the argument and shows the value."""

# mypy: disable-error-code="arg-type, list-item, type-var"
# Wrong types are what is tested.

import re
from collections.abc import Callable
from functools import cache

import pytest

from adapter import (
    Agent,
    AsyncAgent,
    ChatClient,
    Guardrails,
    Host,
    Parser,
    PermissionRule,
    Steps,
    Tool,
    Transcript,
    Turn,
    UsageError,
    Workspace,
    derive,
    guess_format,
    parse,
    patch_text,
    replay,
    system_prompt,
    tool,
    wrap,
)
from adapter.backends.endpoint_discovery import Endpoint

pytestmark = pytest.mark.quick

RAW_WORDING = re.compile(
    r"NoneType|discriminator|pydantic|Errno|has no attribute|unhashable|not iterable|Input should|embedded null|"
    r"codec can't"
)
MAX_MESSAGE = 800


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


VALUES = [
    None, True, -1, 10**30, float("nan"), "nonsense", "a\0b", "\udcff", b"x", [3], [None], {"a": 1}, object(), add,
]  # fmt: skip
"""Values that are wrong for most arguments."""

EDIT = {"old_text": "hello", "new_text": "bye"}
ENDPOINT = Endpoint("http://127.0.0.1:9/v1")


def read_all(text="hi", **options):
    parser = Parser(**options)
    parser.feed(text)
    parser.close()


@cache
def client():
    from openai import OpenAI

    return OpenAI(base_url=ENDPOINT.base_url, api_key="x", max_retries=0)


FUNCTIONS: dict[str, tuple[Callable[..., object], str]] = {
    "Parser": (lambda _, **k: read_all(**k), "format tools generation_prompt turn policy text"),
    "parse": (lambda _, **k: parse(**{"text": "hi", **k}), "text tools format generation_prompt turn policy"),
    "guess": (lambda _, **k: guess_format(**k), "model template"),
    "patch_text": (
        lambda _, **k: patch_text(**{"text": "hello\n", "patches": [EDIT], **k}),
        "text path basis empty_old_text names",
    ),
    "system_prompt": (lambda _, **k: system_prompt(**k), "dialect format style tools prompts session"),
    "tool": (lambda _, described=add, **k: tool(described, **k), "described name effect"),
    "Tool": (lambda place, name: Workspace(place, tools=[Tool(name)]), "name"),
    "Tool.from_definition": (lambda _, definition: Tool.from_definition(definition), "definition"),
    "Rule": (lambda _, **k: PermissionRule(**{"verdict": "deny", **k}), "verdict tool pattern"),
    "Rule.parse": (lambda _, **k: PermissionRule.parse(**{"verdict": "deny", "text": "x", **k}), "verdict text"),
    "Rule.from_text": (lambda _, text: PermissionRule.from_text(text), "text"),
    "Steps": (lambda _, **k: Steps(**k), "required before ends_with"),
    "Guardrails": (lambda _, tools=(), **k: Guardrails(tools, **k), "tools on steps retries encode"),
    "Guardrails.check": (lambda _, turn: Guardrails([]).check([], turn), "turn"),
    "Host": (lambda _, **k: Host(**k), "events state skill_folders"),
    "Turn.from_events": (lambda _, events: Turn.from_events(events), "events"),
    "Transcript.from_text": (lambda _, **k: Transcript.from_text(**{"text": '{"kind": "x"}', **k}), "text name"),
    "replay": (lambda _, transcript: replay(transcript), "transcript"),
    "Workspace": (
        lambda place, **k: Workspace(**{"root": place, **k}).close(),
        "root dialect approve ask only state echo rules tools host sandbox edits encoding",
    ),
    "Workspace.run": (
        lambda place, **k: Workspace(place).run(**{"name": "read_file", "arguments": {}, **k}),
        "name arguments",
    ),
    "Workspace.preview": (
        lambda place, **k: Workspace(place).preview(**{"name": "read_file", "arguments": {}, **k}),
        "name arguments",
    ),
    "Workspace.run_calls": (lambda place, turn: Workspace(place).run_calls(turn), "turn"),
    "Agent": (
        lambda place, **k: Agent(**{"workspace": place, "chat": ChatClient(ENDPOINT, "m"), **k}).close(),
        "workspace dialect approve tools format style system prompt limits observe constraint guide guardrails retries "
        "steps max_tools",
    ),
    "Agent.run": (lambda place, task: Agent(place, ChatClient(ENDPOINT, "m", patience_s=0)).run(task), "task"),
    "AsyncAgent": (
        lambda place, **k: AsyncAgent(**{"workspace": place, "chat": ChatClient(ENDPOINT, "m"), **k}),
        "workspace dialect tools retries",
    ),
    "ChatClient": (
        lambda _, **k: ChatClient(**{"endpoint": ENDPOINT, **k}),
        "endpoint model api_key timeout_s patience_s",
    ),
    "ChatClient.stream": (
        lambda _, **k: list(ChatClient(ENDPOINT, "m", patience_s=0).stream(**{"messages": [], **k})),
        "messages stop max_tokens temperature seed extra",
    ),
    "derive": (lambda _, template: derive(template), "template"),
    "wrap": (
        lambda _, **k: wrap(**{"client": client(), **k}),
        "client format style policy constraint profile record prompt template guide max_tools guardrails retries "
        "max_calls context_budget reasoning_budget",
    ),
}
"""By name: a call with one wrong argument, in a folder, and the names of its arguments."""


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_wrong_argument_is_a_usage_error_in_plain_words(name, tmp_path, monkeypatch):
    """Or the value is accepted. None ends in an error of Python or of a library."""
    from adapter import AdapterError

    monkeypatch.chdir(tmp_path)
    call, arguments = FUNCTIONS[name]
    wrong = []
    for argument in arguments.split():
        for value in VALUES:
            try:
                call(str(tmp_path), **{argument: value})
            except AdapterError as error:
                if RAW_WORDING.search(str(error)) or len(str(error)) > MAX_MESSAGE:
                    wrong.append(f"{argument}={value!r}: {error}")
            except Exception as error:  # noqa: BLE001  # whatever it is, it is a fault
                wrong.append(f"{argument}={value!r}: {type(error).__name__}: {error}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda place: Workspace(place, None, tools=[add]), "dialect must be a name, got None"),
        (lambda place: Workspace(place, tools=add), "tools must be a list, got <function add"),
        (lambda place: Workspace(place, tools=[None]), "tools must be functions or Tools, got None"),
        (lambda _: Workspace(None), "root must be a string or a path, got None"),
        (lambda _: Workspace("a\0b"), "path without NUL characters"),
        (lambda place: Workspace(place, approve="yol"), "did you mean 'yolo'"),
        (lambda place: Agent(place, 3), "chat must be a ChatClient"),
        (lambda _: patch_text(None, []), r"patch_text: text must be a string, got None"),
        (lambda _: patch_text("", [], basis="orignal"), "basis must be original or sequence"),
        (lambda _: parse(None), "got None; a response without content"),
        (lambda _: Steps(required="test"), "steps.required must be a list of tools, got 'test'"),
        (lambda _: Transcript.from_text('{"a": 1}'), r"line 1, is not a valid transcript line \('kind' is missing\)"),
        (lambda _: Transcript.from_text('{"kind": "x"}'), "unknown kind 'x'; expected"),
        (lambda _: ChatClient(9), r"endpoint must be Endpoint or a string, got 9 \(int\)"),
        (lambda _: wrap(None), "client, got None"),
    ],
)
def test_message_names_argument_expected_and_actual_value(call, says, tmp_path):
    """In one sentence."""
    with pytest.raises(UsageError, match=says):
        call(tmp_path)


def test_errors_of_the_library_name_no_options_of_the_command_line(tmp_path):
    """A caller of `Agent` has no command line."""
    from adapter import TransportError

    with pytest.raises(TransportError) as caught:
        Agent(tmp_path, base_url="http://127.0.0.1:9")
    assert "--" not in str(caught.value).replace("--port 8080", "")  # of llama-server
    with pytest.raises(UsageError) as wrong:
        wrap(client(), record=tmp_path)
    assert "--" not in str(wrong.value)
