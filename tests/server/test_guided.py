"""Assistance for small models in `adapter serve`, `wrap` and the agent."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import openai
import pytest

from adapter import wrap
from adapter.agent.agent import Agent
from adapter.backends.chat_client import ChatClient, build_constraint_fields
from adapter.backends.endpoint_discovery import Endpoint
from adapter.backends.small_model_detection import SMALL, SmallModelCheck, query_parameter_count
from adapter.prompting.intent.guided_choice import GuidedChoiceSettings
from adapter.protocols.chat_request_translation import translate_chat_request
from adapter.protocols.translation_options import ConstraintSettings, TranslationOptions
from adapter.workspace import Workspace
from tests.command_line import started
from tests.scripted_server import CHAT, MODELS, ScriptedServer, as_json, as_stream, delta
from tests.server.clients import connected
from tests.serving import serving
from tests.template_server import CHATML, TemplateServer

READ = {
    "name": "open_file",
    "description": "Show a file.",
    "parameters": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
}
RAIN = {
    "name": "get_rain",
    "description": "Forecast of rain.",
    "parameters": {"type": "object", "properties": {"town": {"type": "string"}}, "required": ["town"]},
}
TOOLS: list[Any] = [{"type": "function", "function": each} for each in (READ, RAIN)]
EDITED = '{"name": "edit_file", "arguments": {"path": "settings.ini", "old_content": "x", "new_content": "y"}}'
CALL = '<tool_call>\n{"name": "open_file", "arguments": {"path": "a.py"}}\n</tool_call>'


def models(parameters: int | None) -> Any:
    meta = {} if parameters is None else {"meta": {"n_params": parameters}}
    return as_json(200, {"object": "list", "data": [{"id": "m", "object": "model", **meta}]})


def llama_cpp(server: ScriptedServer, parameters: int | None, *texts: str) -> ScriptedServer:
    """A llama.cpp whose template does not support tools."""
    props = {"default_generation_settings": {}, "chat_template": "{{ messages }}", "chat_template_caps": {}}
    server.on("/props", as_json(200, props)).on(MODELS, models(parameters))
    server.on("/apply-template", as_json(200, {"prompt": "<PROMPT>"}))
    return server.on(CHAT, *(as_stream(delta(text), delta(finish_reason="stop")) for text in texts))


def asked(url: str, text: str, **fields: Any) -> Any:
    """Return the calls and the text of an answer."""
    with connected(url) as client:
        return answered(client, text, **fields)


def answered(client: openai.OpenAI, text: str, **fields: Any) -> Any:
    messages: Any = [{"role": "user", "content": text}]
    stream = client.chat.completions.create(model="m", messages=messages, tools=TOOLS, stream=True, **fields)
    deltas = [chunk.choices[0].delta for chunk in stream if chunk.choices]
    calls = [json.loads(call.function.arguments) for each in deltas for call in each.tool_calls or ()]
    return calls, "".join(each.content or "" for each in deltas)


def test_small_model_gets_one_forced_tool(scripted):
    """At temperature 0, constrained by a grammar with the request's value."""
    with serving(llama_cpp(scripted, 135_000_000, CALL).url) as url:
        assert asked(url, "Show a.py") == ([{"path": "a.py"}], "")
    (body,) = scripted.bodies()
    system, request = body["messages"]
    assert "open_file(path)" in system["content"]
    assert "get_rain" not in json.dumps(body)
    assert request == {"role": "user", "content": "Show a.py"}
    assert r"\"a.py\"" in body["grammar"]
    assert body["temperature"] == 0


def test_answer_has_all_calls_of_the_request(scripted):
    """Each further call is limited to values that no call has. The client gets one answer with distinct ids."""
    second = CALL.replace("a.py", "b.py")
    with serving(llama_cpp(scripted, 135_000_000, CALL, second).url) as url, connected(url) as client:
        assert answered(client, "Show a.py and b.py") == ([{"path": "a.py"}, {"path": "b.py"}], "")
        messages: Any = [{"role": "user", "content": "Show a.py and b.py"}]
        scripted.replies[CHAT].clear()
        for text in (CALL, second):
            choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
            scripted.on(CHAT, as_json(200, {"object": "chat.completion", "model": "m", "choices": [choice]}))
        whole = client.chat.completions.create(model="m", messages=messages, tools=TOOLS)
    first, further, *buffered = scripted.bodies()
    assert r"\"b.py\"" in first["grammar"]
    assert r"\"a.py\"" not in further["grammar"]
    assert first["messages"][-1] == further["messages"][-1]
    assert [each["grammar"] for each in buffered] == [first["grammar"], further["grammar"]]
    assert whole.choices[0].finish_reason == "tool_calls"
    calls: Any = whole.choices[0].message.tool_calls
    assert [json.loads(call.function.arguments)["path"] for call in calls] == ["a.py", "b.py"]
    assert len({call.id for call in calls}) == 2


def test_client_can_forbid_further_calls(scripted):
    with serving(llama_cpp(scripted, 135_000_000, CALL).url) as url:
        assert asked(url, "Show a.py and b.py", parallel_tool_calls=False) == ([{"path": "a.py"}], "")
    assert len(scripted.bodies()) == 1


def test_first_call_survives_a_server_that_rejects_the_second_request(scripted):
    llama_cpp(scripted, 135_000_000, CALL).on(CHAT, as_json(500, {"error": {"message": "out of memory"}}))
    with serving(scripted.url) as url:
        assert asked(url, "Show a.py and b.py") == ([{"path": "a.py"}], "")
    assert len(scripted.bodies()) == 2


def test_request_without_matching_tool_is_answered_in_words(scripted):
    """As if there were no tools, also after a tool result. The client's temperature is kept."""
    with serving(llama_cpp(scripted, 135_000_000, "Hello.").url) as url:
        assert asked(url, "Good morning!", temperature=0.7) == ([], "Hello.")
        called = {"id": "c1", "type": "function", "function": {"name": "get_rain", "arguments": '{"town": "Bern"}'}}
        talk: Any = [
            {"role": "user", "content": "Forecast of rain for Bern"},
            {"role": "assistant", "content": None, "tool_calls": [called]},
            {"role": "tool", "tool_call_id": "c1", "content": "none"},
        ]
        with connected(url) as client:
            stream = client.chat.completions.create(model="m", messages=talk, tools=TOOLS, stream=True)
            assert not any(chunk.choices[0].delta.tool_calls for chunk in stream if chunk.choices)
    first, second = scripted.bodies()
    assert first["messages"] == [{"role": "user", "content": "Good morning!"}]
    assert first["temperature"] == 0.7
    assert not {"grammar", "tools"} & (first.keys() | second.keys())
    assert [each["role"] for each in second["messages"]] == ["user", "assistant", "user"]


@pytest.mark.parametrize("parameters", [SMALL + 1, 8_000_000_000, None])
def test_larger_model_is_not_assisted(scripted, parameters):
    """The bytes are the same as without assistance; so with a style, a constraint, or a tool template."""
    with serving(llama_cpp(scripted, parameters, CALL).url) as url:
        assert asked(url, "Show a.py") == ([{"path": "a.py"}], "")
    with serving(scripted.url, "--guide", "off") as url:
        assert asked(url, "Show a.py") == ([{"path": "a.py"}], "")
    sizes, off = scripted.bodies()
    session = partial(json.dumps, sort_keys=True)
    assert len(session(sizes)) == len(session(off))
    assert "# Tools" in sizes["messages"][0]["content"]


@pytest.mark.parametrize(
    "chosen", [["--guide", "off"], ["--style", "compact"], ["--constraint", "off"], ["--grounded"]]
)
def test_user_settings_disable_assistance(scripted, chosen):
    with serving(llama_cpp(scripted, 135_000_000, CALL).url, *chosen) as url:
        asked(url, "Show a.py")
    (body,) = scripted.bodies()
    assert "grammar" not in body
    assert "get_rain" in json.dumps(body)


def test_equal_requests_send_equal_bytes():
    """Also if the model is known to be large."""
    body = {"model": "m", "messages": [{"role": "user", "content": "Show a.py"}], "tools": TOOLS}
    enforce = partial(build_constraint_fields, "llama.cpp")
    plain = translate_chat_request(body, TranslationOptions(constraints=ConstraintSettings(enforce=enforce)))
    assert (
        translate_chat_request(
            body, TranslationOptions(constraints=ConstraintSettings(enforce=enforce), guided_choice=None, guide="off")
        ).body
        == plain.body
    )
    assert (
        translate_chat_request(
            body,
            TranslationOptions(constraints=ConstraintSettings(enforce=enforce), guided_choice=GuidedChoiceSettings()),
        ).body
        != plain.body
    )


def test_tool_template_replaces_assistance():
    """Regardless of the model's size."""
    with TemplateServer("llama.cpp", CHATML, CALL) as server, serving(server.url, "--guide", "on") as url:
        assert asked(url, "Show a.py") == ([{"path": "a.py"}], "")
        assert "get_rain" in server.prompts[-1]


def test_assistance_is_logged_at_start(scripted):
    """With the option that disables it."""
    with started("serve", "--port", "0", "--upstream", llama_cpp(scripted, 9).url) as run:
        said = run.first_lines(3).splitlines()
    assert said[1].startswith("prompt: in words")
    assert said[2].startswith("guided tool choice: ")
    assert "--guide off" in said[2]


def test_wrap_and_agent_send_same_request(scripted, tmp_path):
    """The same messages and grammar as `serve`."""
    llama_cpp(scripted, 135_000_000, CALL)
    with serving(scripted.url) as url:
        asked(url, "Show a.py")
    with connected(f"{scripted.url}/v1") as client:
        assert answered(wrap(client), "Show a.py") == ([{"path": "a.py"}], "")
        answered(wrap(client, guide="off"), "Show a.py")
    served, wrapped, alone = scripted.bodies()
    assert (served["messages"], served["grammar"]) == (wrapped["messages"], wrapped["grammar"])
    assert "grammar" not in alone
    scripted.requests.clear()
    (tmp_path / "a.py").write_text("print(1)\n", encoding="utf-8")
    said = CALL.replace("open_file", "read_file")
    scripted.replies[CHAT].clear()
    scripted.on(CHAT, as_stream(delta(said), delta(finish_reason="stop")))
    with ChatClient(Endpoint(f"{scripted.url}/v1", "llama.cpp")) as chat, Workspace(tmp_path) as workspace:
        agent = Agent(workspace, chat)
        done = agent.run("Show a.py")
        assert (done.reason, done.content) == ("finished", "print(1)")
        (body,) = scripted.bodies()
        read = workspace.tools["read_file"].to_openai()
    expected = translate_chat_request(
        {"messages": [{"role": "user", "content": "Show a.py"}], "tools": [read]},
        TranslationOptions(
            constraints=ConstraintSettings(enforce=partial(build_constraint_fields, "llama.cpp")),
            guided_choice=GuidedChoiceSettings(),
        ),
    )
    assert body["messages"] == expected.body["messages"]
    assert body["grammar"] == expected.body["grammar"]


def test_model_size_is_read_from_server(scripted):
    """From llama.cpp and Ollama; missing or invalid sizes do not count as small."""
    ollama = as_json(200, {"model_info": {"general.parameter_count": 135_000_000}})
    scripted.on("/api/show", ollama, as_json(404, {"error": "no such model"}))
    assert query_parameter_count(Endpoint(f"{scripted.url}/v1", "ollama"), "m") == 135_000_000
    assert query_parameter_count(Endpoint(f"{scripted.url}/v1", "ollama"), "other") is None
    scripted.on(MODELS, models(42), models(None), as_json(200, {"data": []}), as_json(200, {"data": [{"meta": 1}]}))
    endpoint = Endpoint(f"{scripted.url}/v1", "llama.cpp")
    assert [query_parameter_count(endpoint, "") for _ in range(4)] == [42, None, None, None]
    assert query_parameter_count(Endpoint(f"{scripted.url}/v1", "vllm"), "m") is None
    assert SmallModelCheck(endpoint, "on").find_guided_choice("") == GuidedChoiceSettings()
    assert SmallModelCheck(endpoint, "off").find_guided_choice("") is None


def test_random_model_makes_expected_call(random_engine):
    """A tiny model through a real llama.cpp: the constraint leaves it only the right call."""
    with serving(random_engine.endpoint.base_url) as url:
        assert asked(url, "Show a.py", max_tokens=200) == ([{"path": "a.py"}], "")


def chat_with(scripted, texts) -> ChatClient:
    llama_cpp(scripted, 135_000_000, *texts)
    return ChatClient(Endpoint(f"{scripted.url}/v1", "llama.cpp"))


@pytest.mark.parametrize(
    "task",
    ["Delete the old file.", "Move the file", "Run it", "Use delete_file to clean up", "Use move_file for the old one"],
)
def test_agent_offers_no_risky_tool_without_a_named_target(scripted, tmp_path, task):
    """The request shares words with a tool that deletes, moves or executes, but names no path and no command."""
    (tmp_path / "a.py").write_text("print(1)\n", encoding="utf-8")
    call = '<tool_call>\n{"name": "delete_file", "arguments": {"path": "a.py"}}\n</tool_call>'
    with chat_with(scripted, [call]) as chat, Agent(tmp_path, chat, guide="on", approve="yolo") as agent:
        agent.run(task)
        risky = [name for name, tool in agent.workspace.tools.items() if tool.is_risky]
    grammar = scripted.bodies()[0].get("grammar", "")
    assert risky
    assert not [name for name in risky if name in grammar]


@pytest.mark.parametrize(
    ("task", "name", "value"),
    [
        ("Delete a.py", "delete_file", "a.py"),
        ("Run the command pytest", "run_command", "pytest"),
        ("Run the command 'ls -l'", "run_command", "ls -l"),
    ],
)
def test_agent_offers_a_risky_tool_with_the_named_target_only(scripted, tmp_path, task, name, value):
    (tmp_path / "a.py").write_text("print(1)\n", encoding="utf-8")
    (tmp_path / "b.py").write_text("print(2)\n", encoding="utf-8")
    with chat_with(scripted, ["-"]) as chat, Agent(tmp_path, chat, guide="on", approve="yolo") as agent:
        agent.run(task)
    grammar = scripted.bodies()[0]["grammar"]
    assert name in grammar
    assert json.dumps(json.dumps(value))[1:-1] in grammar
    assert "b.py" not in grammar


@pytest.mark.parametrize(
    ("task", "left"),
    [
        ("Delete a.log and b.log", ["c.log", "keep.txt"]),
        ("Delete a.log, b.log and c.log", ["keep.txt"]),
        ("Delete a.log", ["b.log", "c.log", "keep.txt"]),
        ("Delete a.log but not b.log", ["b.log", "c.log", "keep.txt"]),
    ],
)
def test_agent_makes_the_call_for_each_value_of_a_list(scripted, tmp_path, task, left):
    """The model writes the first; the others follow from the message, and are calls of the same answer."""
    for name in ("a.log", "b.log", "c.log", "keep.txt"):
        (tmp_path / name).write_text("x\n", encoding="utf-8")
    call = '<tool_call>\n{"name": "delete_file", "arguments": {"path": "a.log"}}\n</tool_call>'
    with chat_with(scripted, [call]) as chat, Agent(tmp_path, chat, guide="on", approve="yolo") as agent:
        agent.run(task)
    assert sorted(path.name for path in tmp_path.iterdir()) == left
    assert len(scripted.bodies()) == 1


@pytest.mark.parametrize(
    ("parameters", "grammars"), [(500_000_000, [True, False, True]), (7_000_000_000, [False, False])]
)
def test_very_small_model_is_held_to_words_after_the_change(scripted, tmp_path, parameters, grammars):
    """It would repeat its call, or change more. Larger models decide by themselves."""
    (tmp_path / "a.md").write_text("a smal tool\n")
    edit = {"name": "edit_file", "arguments": {"path": "a.md", "old_content": "smal", "new_content": "small"}}
    answers = ["edit", f"<tool_call>\n{json.dumps(edit)}\n</tool_call>", "It is fixed."][-len(grammars) :]
    llama_cpp(scripted, parameters, *answers)
    with Agent(tmp_path, base_url=scripted.url, approve="yolo") as agent:
        assert agent.run('Fix the typo "smal" in a.md: "small"').content == "It is fixed."
    assert [("grammar" in body) for body in scripted.bodies(CHAT)] == grammars


@pytest.mark.parametrize(("parameters", "is_small"), [(500_000_000, True), (7_000_000_000, False)])
def test_very_small_model_has_the_basic_tools_and_answers_without_them(tmp_path, parameters, is_small):
    """A repeated call is answered by a plain question below the result. The definitions take a third of the prompt."""
    (tmp_path / "a.ini").write_text("port = 4711\n")
    call = '<tool_call>{"name": "read_file", "arguments": {"path": "a.ini"}}</tool_call>'
    with TemplateServer("llama.cpp", CHATML, call, call, "4711", parameters=parameters) as server:
        with Agent(tmp_path, base_url=server.url) as agent:
            assert agent.run("Which port is set in a.ini?").content == "4711"
        first, last = server.prompts[0], server.prompts[-1]
    assert ("apply_edit" in first, "edit_file" in first) == (not is_small, True)
    question = "<|im_start|>user\nport = 4711\n\n\nWhich port is set in a.ini?<|im_end|>\n<|im_start|>assistant\n"
    assert (last == question) == is_small


@pytest.mark.parametrize(
    ("request_", "first", "held_to"),
    [
        ("In settings.ini, replace {{a}} by b", EDITED.replace("y", "x"), "read_file"),
        ("In settings.ini, replace {{a}} by b", EDITED, "line+"),
        ("Fix settings.ini", EDITED, "line+"),
        ("Put the code into b.ini: 7", EDITED.replace("settings.ini", "b.ini"), "line+"),
        ("settings.ini can go", '{"name": "read_file", "arguments": {"path": "the file settings.ini"}}', "read_file"),
        ("Explain settings.ini", EDITED, ""),
        ("settings.ini kann weg", EDITED, "read_file"),
        ("settings.ini: {{a}} ist 80", EDITED, "line+"),
        ("settings.ini: port 80", EDITED.replace('"x"', '"port"'), ""),
    ],
)
def test_very_small_model_is_held_to_the_next_step_after_a_failed_call(tmp_path, request_, first, held_to):
    """It had edited a file that it had not read, or that did not exist, or had repeated a wrong path."""
    (tmp_path / "settings.ini").write_text("port = {{a}}\n")
    call = f"<tool_call>{first}</tool_call>"
    with TemplateServer("llama.cpp", CHATML, call, "Done.", parameters=500_000_000) as server:
        with Agent(tmp_path, base_url=server.url, approve="yolo") as agent:
            agent.run(request_)
        grammars = [body.get("grammar", "") for path, body in server.bodies if "completion" in path]
    assert grammars[0] == ""
    assert held_to in grammars[1]
    assert bool(grammars[1]) == bool(held_to)
