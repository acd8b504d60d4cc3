"""The user's configuration: what it may say, what is wrong in it, and that a run does what it says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pydantic import BaseModel
from typer.testing import CliRunner

from adapter.cli.app import make_app
from adapter.cli.config import Config, ModelTable, read_config, read_toml
from adapter.core.errors import UsageError
from tests.agent.test_subagents import call
from tests.scripted_server import CHAT, MODELS, ScriptedServer, as_json, as_stream, delta

DOCS = Path(__file__).parents[2] / "docs"
WHOLE = """
[search]
url = "http://localhost:8888/search?format=json&q={query}"
key_variable = "SEARCH_KEY"

[docs]
find_url = "http://localhost:1/find?q={name}"
read_url = "http://localhost:1{id}?page={page}"

[skills]
folders = ["~/skills", "/srv/skills"]

[models.strong]
base_url = "http://box:8080"
model = "big"
format = "qwen3_coder"

[models."my own"]
model = "small"
"""


@pytest.fixture
def home(tmp_path, monkeypatch):
    """The user's configuration directory; what is written into it counts."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    folder = tmp_path / "config" / "toolcall-adapter"
    folder.mkdir(parents=True)
    return folder


@pytest.fixture
def workspace(tmp_path):
    folder = tmp_path / "workspace"
    folder.mkdir()
    return folder


def test_every_key_is_read(home, workspace):
    """Under its own name; what is left out is empty."""
    assert read_config(workspace) == Config()
    (home / "config.toml").write_text(WHOLE)
    config = read_config(workspace)
    assert config.search is not None
    assert ((config.search.url or "")[:21], config.search.key_variable) == ("http://localhost:8888", "SEARCH_KEY")
    assert config.docs is not None
    assert (config.docs.find_url, config.docs.read_url) == (
        "http://localhost:1/find?q={name}",
        "http://localhost:1{id}?page={page}",
    )
    assert config.skills.folders == ["~/skills", "/srv/skills"]
    strong = ModelTable(model="big", base_url="http://box:8080", format="qwen3_coder")
    assert config.models == {"strong": strong, "my own": ModelTable(model="small")}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[serch]\nurl = 'x'", "unknown key 'serch'; did you mean 'search'?"),
        ("[search]\nuri = 'x'", "unknown key 'search.uri'; did you mean 'url'?"),
        ("[search]\nkey_variable = 'X'", "'search': give a service (exa, brave, searxng) or a url"),
        ("[search]\nservice = 'exa'\nmost = 5", "'search': most of 'exa': these are known; give them with a url alone"),
        ("[skills]\nfolders = 'x'", "'skills.folders': must be a list"),
        ("[models.strong]\nmodle = 'x'", "unknown key 'models.strong.modle'; did you mean 'model'?"),
        ("[models.strong]\nzz = 1", "unknown key 'models.strong.zz'; there are: model, base_url, format"),
        ("colour = 1", "unknown key 'colour'; there are: search, docs, skills, guardrails, steps, models"),
        ("[models]\nstrong = 'big'", "'models.strong': must be an object"),
        ("= 1", "is not TOML"),
        ("\xff", "is not TOML"),
    ],
)
def test_what_is_wrong_is_named_with_the_nearest_key(home, workspace, text, problem):
    """With the file, so that it can be mended."""
    file = home / "config.toml"
    file.write_bytes(text.encode("latin-1"))
    with pytest.raises(UsageError) as caught:
        read_config(workspace)
    assert str(file) in str(caught.value)
    assert problem in str(caught.value)


def test_the_documented_configurations_can_be_used(home, workspace):
    """Each block of docs/agent.md, as it stands."""
    blocks = re.findall(r"```toml\n(.*?)```", (DOCS / "agent.md").read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) == 2
    for block in blocks:
        (home / "config.toml").write_text(block)
        config = read_config(workspace)
        assert config.search is not None
        config.search.provider()
    assert config.search is not None
    assert config.search.most == 50


def test_nothing_is_read_from_a_workspace(home, workspace):
    """A model could have written it, or whoever the folder comes from; links do not help."""
    own = workspace / "config.toml"
    own.write_text("[search]\nurl = 'http://evil.example/{query}'")
    (workspace / ".config" / "toolcall-adapter").mkdir(parents=True)
    (workspace / ".config" / "toolcall-adapter" / "config.toml").write_text(own.read_text())
    assert read_config(workspace) == Config()
    with pytest.raises(UsageError, match="inside the workspace"):
        read_config(workspace, own)
    (home / "config.toml").symlink_to(own)
    with pytest.raises(UsageError, match="inside the workspace"):
        read_config(workspace)


def test_other_settings_are_read_the_same_way(tmp_path):
    """Any pydantic model, in any file of the user's."""

    class Profile(BaseModel, extra="forbid"):
        format: str

    file = tmp_path / "profile.toml"
    file.write_text("format = 'hermes'")
    assert read_toml(file, Profile).format == "hermes"
    file.write_text("fromat = 'hermes'")
    with pytest.raises(UsageError, match=r"did you mean 'format'\?"):
        read_toml(file, Profile)
    with pytest.raises(UsageError, match=r"cannot read .*missing\.toml"):
        read_toml(tmp_path / "missing.toml", Profile)


# ------------------------------------------------------------------------- runs


def answers(*texts: str):
    return [as_stream(delta(text), delta(finish_reason="stop")) for text in texts]


def run(workspace: Path, server: ScriptedServer, *options: str):
    server.on(MODELS, as_json(200, {"object": "list", "data": [{"id": "m", "object": "model"}]}))
    command = ["run", "Do it.", "-w", str(workspace), "--base-url", server.url, "--dialect", "maki", *options]
    done = CliRunner().invoke(make_app(), [*command, "--approve", "yolo"])
    assert done.exit_code == 0, done.output
    return server.bodies()


def test_a_tier_of_sub_agents_has_a_model_and_a_server_of_its_own(home, workspace, scripted):
    """Asked only when a sub-agent needs it, in its own format."""
    task = call("task", description="Look", prompt="Look around.", model_tier="strong")
    with ScriptedServer() as other:
        other.on(CHAT, *answers("I looked."))
        (home / "config.toml").write_text(
            f"[models.strong]\nbase_url = '{other.url}'\nmodel = 'big'\nformat = 'qwen3_coder'\n"
            "[models.weak]\nbase_url = 'http://127.0.0.1:1'\n"
        )
        scripted.on(CHAT, *answers(task, "Done."))
        said = run(workspace, scripted)
        (asked,) = other.bodies()
    assert asked["model"] == "big"
    assert "<function=" in asked["messages"][0]["content"]
    assert asked["messages"][1]["content"] == "Look around."
    assert "I looked." in said[1]["messages"][-1]["content"]


def test_a_model_can_be_named_for_a_tier(home, workspace, scripted):
    """On the session's own server; what is no tier and model is refused."""
    task = call("task", description="Look", prompt="Look around.", model_tier="weak")
    scripted.on(CHAT, *answers(task, "I looked.", "Done."))
    said = run(workspace, scripted, "--agent-model", "weak=tiny")
    assert [body["model"] for body in said] == ["m", "tiny", "m"]
    wrong = CliRunner().invoke(make_app(), ["run", "x", "-w", str(workspace), "--agent-model", "tiny"])
    assert isinstance(wrong.exception, UsageError)
    assert "strong=qwen3:32b" in str(wrong.exception)


def test_search_and_skills_are_those_of_the_user(home, workspace, scripted, tmp_path):
    """By file or by flag; skills of several folders come together."""
    for name in ("release", "review"):
        folder = tmp_path / name / name
        folder.mkdir(parents=True)
        (folder / "SKILL.md").write_text(f"---\nname: {name}\ndescription: How to {name}\n---\nDo it well.\n")
    scripted.on("/s?q=tin%20openers", as_json(200, {"results": [{"title": "Tin", "url": "http://t", "content": "x"}]}))
    scripted.on(CHAT, *answers(call("websearch", query="tin openers"), "Done.") * 2)
    file = tmp_path / "mine.toml"
    file.write_text(f"[search]\nurl = '{scripted.url}/s?q={{query}}'\n[skills]\nfolders = ['{tmp_path}/release']\n")
    said = run(workspace, scripted, "--config", str(file), "--skills", str(tmp_path / "review"))
    assert "release | review" in said[0]["messages"][0]["content"]
    assert "http://t" in said[1]["messages"][-1]["content"]
    again = run(workspace, scripted, "--search-url", f"{scripted.url}/s?q={{query}}")[2:]
    assert "release" not in again[0]["messages"][0]["content"]
    assert "http://t" in again[1]["messages"][-1]["content"]


def test_a_search_service_by_name_is_asked_and_its_key_is_nowhere(home, workspace, scripted, tmp_path, monkeypatch):
    """By a variable whose name does not say that it holds a key: not in the prompt, not in the record."""
    monkeypatch.setenv("MINE", "c0nfidential")
    scripted.on("/search", as_json(200, {"results": [{"title": "T c0nfidential", "url": "http://t", "text": "x"}]}))
    scripted.on(CHAT, *answers(call("websearch", query="c0nfidential tins"), "Done."))
    file, record = tmp_path / "mine.toml", tmp_path / "talk.jsonl"
    file.write_text(f"[search]\nservice = 'exa'\nurl = '{scripted.url}'\nkey_variable = 'MINE'\n")
    said = run(workspace, scripted, "--config", str(file), "--record", str(record))
    assert "T [redacted]" in said[1]["messages"][-1]["content"]
    ((headers, body),) = [(headers, body) for path, headers, body in scripted.requests if path == "/search"]
    assert (headers["x-api-key"], body["query"], body["numResults"]) == ("c0nfidential", "c0nfidential tins", 8)
    assert "c0nfidential" not in record.read_text()


def test_searxng_is_named_on_the_command_line(home, workspace, scripted):
    """With the server that it is on; a name alone that needs one is refused before anything starts."""
    path = "/search?format=json&q=tin"
    scripted.on(path, as_json(200, {"results": [{"title": "Tin", "url": "http://t", "content": "x"}]}))
    scripted.on(CHAT, *answers(call("websearch", query="tin"), "Done."))
    said = run(workspace, scripted, "--search", "searxng", "--search-url", scripted.url)
    assert "http://t" in said[1]["messages"][-1]["content"]
    wrong = CliRunner().invoke(make_app(), ["run", "x", "-w", str(workspace), "--search", "searxng"])
    assert "http://localhost:8888" in str(wrong.exception)


def test_an_address_that_is_none_is_told_before_anything_starts(workspace):
    wrong = CliRunner().invoke(make_app(), ["run", "x", "-w", str(workspace), "--search-url", "http://s/?q=query"])
    assert isinstance(wrong.exception, UsageError)
    assert "{query}" in str(wrong.exception)
