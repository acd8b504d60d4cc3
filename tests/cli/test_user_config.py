"""The user's configuration: its keys, its errors, and its effect on a run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pydantic import BaseModel
from typer.testing import CliRunner

from adapter.cli.app import make_app
from adapter.cli.user_config import Config, ModelTable, read_config, read_toml
from adapter.core.errors import UsageError
from tests.model_text import call
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
    """The user's configuration directory."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    folder = tmp_path / "config" / "toolcall-adapter"
    folder.mkdir(parents=True)
    return folder


@pytest.fixture
def workspace(tmp_path):
    folder = tmp_path / "workspace"
    folder.mkdir()
    return folder


def test_read_config_reads_every_key(home, workspace):
    """Missing keys have empty defaults."""
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
        (
            "[search]\nkey_variable = 'X'",
            "'search': the search service is missing; set service (exa, brave, searxng) or url",
        ),
        (
            "[search]\nservice = 'exa'\nmost = 5",
            "'search': most cannot be combined with service 'exa'; set url instead",
        ),
        ("[skills]\nfolders = 'x'", "'skills.folders': must be a list"),
        ("[models.strong]\nmodle = 'x'", "unknown key 'models.strong.modle'; did you mean 'model'?"),
        ("[models.strong]\nzz = 1", "unknown key 'models.strong.zz'; expected one of: model, base_url, format"),
        ("colour = 1", "unknown key 'colour'; expected one of: search, docs, skills, guardrails, steps, models"),
        ("[models]\nstrong = 'big'", "'models.strong': must be an object"),
        ("= 1", "is not valid TOML"),
        ("\xff", "is not valid TOML"),
    ],
)
def test_read_config_error_names_the_nearest_key(home, workspace, text, problem):
    file = home / "config.toml"
    file.write_bytes(text.encode("latin-1"))
    with pytest.raises(UsageError) as caught:
        read_config(workspace)
    assert str(file) in str(caught.value)
    assert problem in str(caught.value)


def test_documented_configurations_are_valid(home, workspace):
    blocks = re.findall(r"```toml\n(.*?)```", (DOCS / "agent.md").read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) == 2
    for block in blocks:
        (home / "config.toml").write_text(block)
        config = read_config(workspace)
        assert config.search is not None
        config.search.build_provider()
    assert config.search is not None
    assert config.search.most == 50


def test_read_config_refuses_files_in_the_workspace(home, workspace):
    """A model could have written them, even through a link."""
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


def test_read_toml_accepts_any_pydantic_model(tmp_path):

    class Profile(BaseModel, extra="forbid"):
        format: str

    file = tmp_path / "profile.toml"
    for encoding in ("utf-8", "utf-8-sig"):
        file.write_text("format = 'hermes'", encoding=encoding)
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


def test_subagent_tier_uses_its_configured_model_and_server(home, workspace, scripted):
    """It is connected on first use, with its own format."""
    task = call("task", description="Look", prompt="Look around.", model_tier="strong")
    with ScriptedServer() as other:
        other.on(CHAT, *answers("I looked."))
        (home / "config.toml").write_text(
            f"[models.strong]\nbase_url = '{other.url}'\nmodel = 'big'\nformat = 'qwen3_coder'\n"
            "[models.weak]\nbase_url = 'http://127.0.0.1:1'\n"
        )
        scripted.on(CHAT, *answers(task, "It has two kinds."))
        message = run(workspace, scripted)
        (asked,) = other.bodies()
    assert asked["model"] == "big"
    assert "<function=" in asked["messages"][0]["content"]
    assert asked["messages"][1]["content"] == "Look around."
    assert "I looked." in message[1]["messages"][-1]["content"]


def test_agent_model_option_sets_the_model_of_a_tier(home, workspace, scripted):
    task = call("task", description="Look", prompt="Look around.", model_tier="weak")
    scripted.on(CHAT, *answers(task, "I looked.", "It has two kinds."))
    message = run(workspace, scripted, "--agent-model", "weak=tiny")
    assert [body["model"] for body in message] == ["m", "tiny", "m"]
    wrong = CliRunner().invoke(make_app(), ["run", "x", "-w", str(workspace), "--agent-model", "tiny"])
    assert isinstance(wrong.exception, UsageError)
    assert "strong=qwen3:32b" in str(wrong.exception)


def test_search_and_skills_come_from_the_user(home, workspace, scripted, tmp_path):
    """From the configuration or from options, which are combined."""
    for name in ("release", "review"):
        folder = tmp_path / name / name
        folder.mkdir(parents=True)
        (folder / "SKILL.md").write_text(f"---\nname: {name}\ndescription: How to {name}\n---\nDo it well.\n")
    scripted.on("/s?q=tin%20openers", as_json(200, {"results": [{"title": "Tin", "url": "http://t", "content": "x"}]}))
    scripted.on(CHAT, *answers(call("websearch", query="tin openers"), "It has two kinds.") * 2)
    file = tmp_path / "mine.toml"
    file.write_text(f"[search]\nurl = '{scripted.url}/s?q={{query}}'\n[skills]\nfolders = ['{tmp_path}/release']\n")
    message = run(workspace, scripted, "--config", str(file), "--skills", str(tmp_path / "review"))
    assert "release | review" in message[0]["messages"][0]["content"]
    assert "http://t" in message[1]["messages"][-1]["content"]
    again = run(workspace, scripted, "--search-url", f"{scripted.url}/s?q={{query}}")[2:]
    assert "release" not in again[0]["messages"][0]["content"]
    assert "http://t" in again[1]["messages"][-1]["content"]


def test_search_key_is_never_in_the_prompt_or_the_recording(home, workspace, scripted, tmp_path, monkeypatch):
    """Even if the name of its variable does not look like a key."""
    monkeypatch.setenv("MINE", "c0nfidential")
    scripted.on("/search", as_json(200, {"results": [{"title": "T c0nfidential", "url": "http://t", "text": "x"}]}))
    scripted.on(CHAT, *answers(call("websearch", query="c0nfidential tins"), "It has two kinds."))
    file, record = tmp_path / "mine.toml", tmp_path / "talk.jsonl"
    file.write_text(f"[search]\nservice = 'exa'\nurl = '{scripted.url}'\nkey_variable = 'MINE'\n")
    message = run(workspace, scripted, "--config", str(file), "--record", str(record))
    assert "T [redacted]" in message[1]["messages"][-1]["content"]
    ((headers, body),) = [(headers, body) for path, headers, body in scripted.requests if path == "/search"]
    assert (headers["x-api-key"], body["query"], body["numResults"]) == ("c0nfidential", "c0nfidential tins", 8)
    assert "c0nfidential" not in record.read_text()


def test_searxng_needs_its_address(home, workspace, scripted):
    path = "/search?format=json&q=tin"
    scripted.on(path, as_json(200, {"results": [{"title": "Tin", "url": "http://t", "content": "x"}]}))
    scripted.on(CHAT, *answers(call("websearch", query="tin"), "It has two kinds."))
    message = run(workspace, scripted, "--search", "searxng", "--search-url", scripted.url)
    assert "http://t" in message[1]["messages"][-1]["content"]
    wrong = CliRunner().invoke(make_app(), ["run", "x", "-w", str(workspace), "--search", "searxng"])
    assert "http://localhost:8888" in str(wrong.exception)


def test_invalid_search_address_is_refused_at_the_start(workspace):
    wrong = CliRunner().invoke(make_app(), ["run", "x", "-w", str(workspace), "--search-url", "http://s/?q=query"])
    assert isinstance(wrong.exception, UsageError)
    assert "{query}" in str(wrong.exception)


def test_only_the_first_problems_are_named(workspace, tmp_path):
    """A damaged file has hundreds."""
    path = tmp_path / "damaged.toml"
    path.write_text("".join(f"key{number} = 1\n" for number in range(300)), encoding="utf-8")
    with pytest.raises(UsageError, match="and 295 more problems") as raised:
        read_config(workspace, path)
    assert len(str(raised.value)) < 1_500


def test_long_key_of_a_damaged_file_is_shortened(workspace, tmp_path):
    path = tmp_path / "damaged.toml"
    path.write_text(f"{'k' * 200_000} = 1\n[{'t' * 9_000}.{'u' * 9_000}]\n", encoding="utf-8")
    with pytest.raises(UsageError, match=r"unknown key 'k{77}...'") as raised:
        read_config(workspace, path)
    assert len(str(raised.value)) < 1_000
