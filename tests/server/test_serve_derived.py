"""Models of unknown families, whose format is inferred from the server's chat template."""

from __future__ import annotations

import pytest

import adapter
from adapter.agent.agent import Agent
from adapter.backends.chat_client import ChatClient
from adapter.backends.endpoint_discovery import Endpoint
from adapter.parsing.formats import guess_format
from adapter.workspace import Workspace
from tests.prompting.deriving.families import KNOWN_FORMS, YAML, family
from tests.server.clients import connected, streamed_and_whole
from tests.server.test_serve_own_prompt import ask, asked
from tests.serving import serving
from tests.template_server import TemplateServer

SOURCE = KNOWN_FORMS["keys and values"]
CALL = "<do>read_file\n<k>path</k>\n<v>a.py</v>\n</do>"


@streamed_and_whole
@pytest.mark.parametrize("options", [(), ("--prompt", "words")], ids=["own", "words"])
def test_serve_infers_format_from_template(stream, options):
    """With either kind of prompt; the call's markers are not sent to the client."""
    assert guess_format(template=SOURCE) is None
    with TemplateServer("llama.cpp", SOURCE, f"I look.{CALL}<|stop|>") as server, serving(server.url, *options) as url:
        assert ask(url, stream) == ([{"path": "a.py"}], "I look.")


def test_serve_renders_history_in_inferred_format():
    """Also in a text prompt: past calls are rendered as in the template."""
    with TemplateServer("llama.cpp", SOURCE, "Done.") as server, serving(server.url, "--prompt", "words") as url:
        assert ask(url, False) == ([], "Done.")
        asked_of = [body for path, body in server.bodies if path == "/v1/chat/completions"]
        assert CALL in str(asked_of[-1]["messages"][-2]["content"])


def test_serve_infers_format_from_named_template(tmp_path):
    """For a server without templates; the requested one is used."""
    file = tmp_path / "chat_template.jinja"
    file.write_text(SOURCE)
    options = ("--template", str(file), "--format", "from-template")
    with TemplateServer("koboldcpp", SOURCE, CALL) as server, serving(server.url, *options) as url:
        assert ask(url, False) == ([{"path": "a.py"}], "")


def test_wrap_infers_format_from_template():
    with TemplateServer("llama.cpp", SOURCE, CALL) as server, connected(server.url + "/v1") as client:
        assert asked(adapter.wrap(client), False) == ([{"path": "a.py"}], "")
        assert asked(adapter.wrap(client, format="from-template"), True) == ([{"path": "a.py"}], "")


@pytest.mark.parametrize("source", [YAML, family("")], ids=["no reader", "no calls"])
def test_template_without_format_changes_nothing(source):
    """All formats are detected, as before."""
    call = '<tool_call>\n{"name": "read_file", "arguments": {"path": "a.py"}}\n</tool_call>'
    with TemplateServer("llama.cpp", source, call) as server, serving(server.url) as url:
        assert ask(url, False) == ([{"path": "a.py"}], "")


@pytest.mark.parametrize("is_given", [True, False], ids=["its chat given", "its address"])
def test_agent_uses_inferred_format(is_given, tmp_path):
    """It calls, gets the result in the template's format, and ends."""
    (tmp_path / "a.py").write_text("import os\n")
    with TemplateServer("llama.cpp", SOURCE, CALL, "It imports os.") as server, Workspace(tmp_path) as workspace:
        if is_given:
            with ChatClient(Endpoint(f"{server.url}/v1", "llama.cpp"), "m") as chat:
                done = Agent(workspace, chat).run("What does a.py import?")
        else:
            with Agent(workspace, base_url=f"{server.url}/v1", model="m") as agent:
                done = agent.run("What does a.py import?")
        shown = server.prompts[-1]
    assert done.content == "It imports os."
    assert f"<|assistant|>{CALL}" in shown
    assert "import os" in shown.partition("<out>")[2]
