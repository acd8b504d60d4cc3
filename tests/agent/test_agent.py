"""`Agent` over real HTTP on loopback: prompt, server, text, call, workspace, result."""

import base64
from types import SimpleNamespace

import pytest

from adapter.agent.agent import Agent
from adapter.backends.chat_client import ChatClient, build_constraint_fields
from adapter.backends.endpoint_discovery import find_endpoint
from adapter.conversation.session_steps import Finished, SessionLimits
from adapter.core.errors import TransportError, UsageError
from adapter.core.events import TextDelta, ToolCall, ToolResult
from adapter.workspace import Workspace
from adapter.workspace.capabilities.host_capabilities import Host
from tests.agent.conftest import text_of
from tests.engines import ONLY_ASCII
from tests.scripted_server import CHAT, as_error, as_json, as_stream, delta

EDIT = (
    'I fix it.\n<tool_call>\n{"name": "apply_edit", "arguments": {"path": "a.txt", '
    '"old_text": "one", "new_text": "two"}}\n</tool_call>'
)


def in_pieces(text, finish_reason="stop"):
    """A streamed answer, five characters an event."""
    pieces = [delta(text[start : start + 5]) for start in range(0, len(text), 5)]
    return as_stream(delta(role="assistant"), *pieces, delta(finish_reason=finish_reason))


def run(server, root, task="Change one to two in a.txt", approve="yolo", seen=None, **settings):
    with ChatClient(find_endpoint(server.url), patience_s=1) as chat, Workspace(root, approve=approve) as workspace:
        agent = Agent(workspace, chat, observe=(seen.append if seen is not None else None), **settings)
        return agent.run(task)


def test_text_only_model_edits_a_file(server, root):
    """The call is parsed from the stream and run, and the file is changed."""
    server.on(CHAT, in_pieces(EDIT), in_pieces("Done."))
    seen: list[object] = []
    assert run(server, root, seen=seen) == Finished("answered", "Done.")
    assert text_of(root) == "two\n"
    assert [type(happening) for happening in seen if isinstance(happening, ToolCall | ToolResult)] == [
        ToolCall,
        ToolResult,
    ]
    second = server.bodies()[1]["messages"]
    assert [message["role"] for message in second] == ["system", "user", "assistant", "user"]
    assert second[2]["content"] == EDIT
    assert second[3]["content"].startswith("<tool_response>\n")


PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + (640).to_bytes(4) + (480).to_bytes(4) + b"\x08\x02\0\0\0"
LOOK = '<tool_call>\n{"name": "%s", "arguments": {"%s": "a.png"}}\n</tool_call>'


@pytest.mark.parametrize(
    ("dialect", "read"), [("blade", LOOK % ("read_file", "path")), ("proxyai", LOOK % ("Read", "file_path"))]
)
def test_image_is_shown_to_a_vision_model(server, root, dialect, read):
    """It follows the result in the same message, with a description."""
    (root / "a.png").write_bytes(PNG)
    server.on(CHAT, in_pieces(read), in_pieces("A picture."))
    with (
        ChatClient(find_endpoint(server.url)) as chat,
        Workspace(root, dialect, approve="yolo", host=Host(media=frozenset({"image"}))) as workspace,
    ):
        assert Agent(workspace, chat).run("What is in a.png?").content == "A picture."
    text, image = server.bodies()[1]["messages"][-1]["content"]
    assert "a.png: image/png, 640x480 pixels, 29 bytes, attached." in text["text"]
    assert image == {
        "type": "image_url",
        "image_url": {"url": f"data:image/png;base64,{base64.b64encode(PNG).decode()}"},
    }


def test_image_is_described_to_a_text_model(server, root):
    """One line with its kind, pixels and bytes; the content stays plain text."""
    (root / "a.png").write_bytes(PNG)
    server.on(CHAT, in_pieces(LOOK % ("read_file", "path")), in_pieces("I cannot see it."))
    run(server, root)
    told = server.bodies()[1]["messages"][-1]["content"]
    assert "a.png is an image (image/png, 640x480 pixels, 29 bytes), which this model cannot see" in told


def test_no_tools_are_sent_upstream(server, root):
    """Plain text only: servers that drop or misread `tools` cannot interfere."""
    server.on(CHAT, in_pieces("Hello."))
    run(server, root)
    assert not {"tools", "tool_choice", "functions"} & server.bodies()[0].keys()


def test_call_truncated_at_the_token_limit_is_not_run(server, root):
    """The file is unchanged and the model gets the error."""
    server.on(CHAT, in_pieces(EDIT[:-20], "length"), in_pieces("I give up."))
    assert run(server, root).content == "I give up."
    assert text_of(root) == "one\n"
    assert "cut off" in server.bodies()[1]["messages"][-1]["content"]


def test_call_in_a_dropped_stream_is_not_run(server, root):
    """A stream that ends without a finish reason counts as cut, even right after the JSON."""
    text = EDIT.removesuffix("\n</tool_call>")
    pieces = [delta(text[start : start + 5]) for start in range(0, len(text), 5)]
    server.on(CHAT, as_stream(delta(role="assistant"), *pieces, done=False), in_pieces("Sorry."))
    run(server, root)
    assert text_of(root) == "one\n"


def test_denied_change_is_reported_to_the_model(server, root):
    """Without approval nothing is written, and the conversation continues."""
    server.on(CHAT, in_pieces(EDIT), in_pieces("All right."))
    assert run(server, root, approve=lambda approval: False) == Finished("answered", "All right.")
    assert text_of(root) == "one\n"
    assert "did not approve" in server.bodies()[1]["messages"][-1]["content"]


def test_reasoning_content_of_the_server_is_reasoning(server, root):
    """`reasoning_content` deltas are reasoning, not content."""
    thinking = delta(reasoning_content="Let me see. ")
    server.on(CHAT, as_stream(delta(role="assistant"), thinking, delta("Hello."), delta(finish_reason="stop")))
    assert run(server, root).content == "Hello."


def test_garbage_output_does_no_harm(server, root):
    """Noise is an answer; nothing is run."""
    server.on(CHAT, in_pieces("\x00\x1b[31m{{{</tool_call>\ufffd<tool_cal"))
    assert run(server, root).reason == "answered"
    assert text_of(root) == "one\n"


def test_failing_server_raises_after_the_observer_is_informed(server, root):
    """The error names the server."""
    server.on(CHAT, as_error(400, "this model does not support chat"))
    seen: list[object] = []
    with pytest.raises(TransportError, match=r"does not support chat"):
        run(server, root, seen=seen)
    assert isinstance(seen[-1], Finished)
    assert seen[-1].reason == "failed"


def test_ctrl_c_ends_the_conversation_cleanly(server, root):
    """KeyboardInterrupt while the answer streams: no call is run, the reason is `interrupted`, and the text that the
    observer was shown is kept."""
    server.on(CHAT, in_pieces(EDIT))
    shown = ""

    def interrupt(happening):
        nonlocal shown
        if isinstance(happening, TextDelta):
            shown += happening.text
            raise KeyboardInterrupt

    with ChatClient(find_endpoint(server.url)) as chat, Workspace(root, approve="yolo") as workspace:
        done = Agent(workspace, chat, observe=interrupt).run("Change it")
    assert done.reason == "interrupted"
    assert done.content.startswith(shown)
    assert shown
    assert text_of(root) == "one\n"


def test_random_weights_through_real_llama_cpp_do_no_harm(random_engine, root):
    """A real engine that streams noise: the agent ends, the workspace is as it was."""
    with ChatClient(random_engine.endpoint) as chat, Workspace(root, approve="yolo") as workspace:

        class Short:
            def stream(self, messages, *, stop=()):
                return chat.stream(messages, stop=stop, max_tokens=40)

        done = Agent(workspace, Short(), style="small", limits=SessionLimits(turns=2)).run("Read a.txt")
    assert done.reason in ("answered", "cut_off", "turns", "unreadable")
    assert text_of(root) == "one\n"


@pytest.fixture
def llama_cpp(server):
    return server.on("/props", as_json(200, {"default_generation_settings": {}}))


def test_constraint_arguments_enforces_only_after_a_failed_call(llama_cpp, root):
    """Only the answer after a failed call is constrained."""
    llama_cpp.on(CHAT, in_pieces(EDIT.replace('"arguments"', '"arguments" {')), in_pieces(EDIT), in_pieces("Done."))
    assert run(llama_cpp, root, constraint="arguments") == Finished("answered", "Done.")
    assert text_of(root) == "two\n"
    assert ["grammar" in body for body in llama_cpp.bodies()] == [False, True, False]


def test_constraint_arguments_sends_a_lazy_grammar(llama_cpp, root):
    """Through llama.cpp's completion endpoint, with the prompt of its template."""
    template, completion = "/apply-template", "/completion"
    events = [{"content": EDIT[:30], "stop": False}, {"content": EDIT[30:], "stop": True, "stop_type": "eos"}]
    done = [{"content": "Done.", "stop": True, "stop_type": "eos", "tokens_evaluated": 7, "tokens_predicted": 2}]
    llama_cpp.on(template, *[as_json(200, {"prompt": "<PROMPT>"})] * 2)
    llama_cpp.on(completion, as_stream(*events), as_stream(*done))
    assert run(llama_cpp, root, constraint="arguments") == Finished("answered", "Done.")
    assert text_of(root) == "two\n"
    first, _ = llama_cpp.bodies(completion)
    assert (first["prompt"], first["grammar_lazy"], first["stream"]) == ("<PROMPT>", True, True)
    assert llama_cpp.bodies() == []


def test_real_llama_cpp_accepts_the_lazy_grammar(random_engine, root):
    """Its random model never begins a call, so it writes text."""
    with ChatClient(random_engine.endpoint) as chat, Workspace(root) as workspace:
        waiting = build_constraint_fields("llama.cpp", workspace.tools, waits=True)
        assert waiting["grammar_lazy"]
        chunks = [*chat.stream([{"role": "user", "content": "hi"}], max_tokens=9, seed=1, extra=waiting | ONLY_ASCII)]
    assert "".join(chunk.text for chunk in chunks)
    assert chunks[-1].finish_reason in ("length", "stop")
    assert any(chunk.usage and chunk.usage.prompt for chunk in chunks)


def test_constraint_prefer_ends_with_a_reply(llama_cpp, root):
    """The prompt describes the reply tool, whose argument is the answer."""
    reply = '<tool_call>\n{"name": "reply", "arguments": {"text": "All done."}}\n</tool_call>'
    llama_cpp.on(CHAT, in_pieces(EDIT), in_pieces(reply))
    assert run(llama_cpp, root, constraint="prefer") == Finished("answered", "All done.")
    first, second = llama_cpp.bodies()
    assert "reply" in first["messages"][0]["content"]
    assert "apply_edit" in first["grammar"] == second["grammar"]


def test_constraint_requires_a_chat_client(root):
    with Workspace(root) as workspace, pytest.raises(UsageError, match="requires a ChatClient, got SimpleNamespace"):
        Agent(workspace, SimpleNamespace(stream=None), constraint="prefer")
