"""Profiles are stored, used for their model, and doubted after a change."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.backends import model_queries, probe_profiles
from adapter.backends.endpoint_discovery import Endpoint
from adapter.backends.model_queries import Model
from adapter.backends.probe_profiles import Profile, ProfileScore, ProfileSetup, build_setup_lookup, find_active_profile
from adapter.core.errors import UsageError
from tests.scripted_server import MODELS, as_json

MODEL = Model(name="qwen3:4b", server="ollama", base_url="http://127.0.0.1:11434/v1", digest="abc", template="t1")
PROFILE = Profile(
    model=MODEL,
    use=ProfileSetup(style="compact"),
    before=ProfileScore(tasks=16, right=3),
    after=ProfileScore(tasks=16, right=12),
)


@pytest.fixture(autouse=True)
def _own_config(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1), st.floats(0, 1e6), st.booleans())
def test_saved_profile_loads_unchanged(tmp_path_factory, name, seconds, native):
    """Any name is safe in TOML and as a file's name."""
    path = tmp_path_factory.mktemp("p") / probe_profiles.build_profile_path(name).name
    profile = Profile(
        model=Model(name=name), use=ProfileSetup(native=native), after=ProfileScore(tasks=1, seconds=seconds)
    )
    probe_profiles.save_profile(profile, path)
    assert probe_profiles.load_profile(path) == profile


def test_active_profile_of_the_model_is_reported():
    """`auto` selects it, `none` does not, and other models have no profile."""
    probe_profiles.save_profile(PROFILE, probe_profiles.build_profile_path(MODEL.name))
    profile, (told,) = find_active_profile("auto", MODEL)
    assert profile == PROFILE
    assert told == "profile of qwen3:4b: hermes, compact, off (12 of 16 correct; the server alone: 3)"
    assert find_active_profile("none", MODEL) == (None, [])
    assert find_active_profile("auto", Model(name="other", server="ollama")) == (None, [])
    assert find_active_profile("auto", MODEL.model_copy(update={"server": "vllm"})) == (None, [])


@pytest.mark.parametrize(("field", "said"), [("digest", "model has changed"), ("template", "template has changed")])
def test_profile_of_a_changed_model_is_used_only_by_name(field, said):
    """A note gives the reason in both cases."""
    probe_profiles.save_profile(PROFILE, probe_profiles.build_profile_path(MODEL.name))
    changed = MODEL.model_copy(update={field: "new"})
    profile, (told,) = find_active_profile("auto", changed)
    assert profile is None
    assert said in told
    assert "adapter probe" in told
    profile, notes = find_active_profile("qwen3:4b", changed)
    assert profile == PROFILE
    assert said in notes[1]


def test_profile_of_another_version_is_used_with_a_note():
    """It is most likely still right."""
    probe_profiles.save_profile(
        PROFILE.model_copy(update={"version": "0.0.1"}), probe_profiles.build_profile_path(MODEL.name)
    )
    profile, notes = find_active_profile("auto", MODEL)
    assert profile is not None
    assert "made by version 0.0.1" in notes[1]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("version = ", "is not valid TOML"),
        ("version = '1'", "is not a profile ('model' is missing"),
        ('[model]\nname="x"\n[use]\nstyle="odd"', "use.style"),
    ],
)
def test_invalid_profile_is_skipped_with_a_note(text, said):
    """Automatic selection skips it with a note; selection by name raises."""
    path = probe_profiles.build_profile_path("x")
    path.parent.mkdir(parents=True)
    path.write_text(text, encoding="utf-8")
    profile, (told,) = find_active_profile("auto", Model(name="x"))
    assert profile is None
    assert said in told
    with pytest.raises(UsageError, match=r"profile|TOML"):
        find_active_profile("x", Model(name="x"))


def test_unknown_profile_error_lists_existing_ones():
    probe_profiles.save_profile(PROFILE, probe_profiles.build_profile_path(MODEL.name))
    with pytest.raises(UsageError, match=r"unknown profile 'qwen9'; existing profiles: qwen3_4b"):
        find_active_profile("qwen9", MODEL)


def test_setup_lookup_selects_by_model(scripted):
    """Ollama serves several models; llama.cpp serves one, under any name."""
    probe_profiles.save_profile(
        PROFILE.model_copy(update={"model": Model(name="a", server="ollama")}), probe_profiles.build_profile_path("a")
    )
    scripted.on(MODELS, as_json(200, {"data": [{"id": "a"}, {"id": "b"}]}))
    setup_of, (told,) = build_setup_lookup("auto", Endpoint(f"{scripted.url}/v1", "ollama"))
    assert setup_of is not None
    assert (setup_of("a"), setup_of("b")) == (PROFILE.setup, None)
    assert told.startswith("profile of a: ")
    probe_profiles.save_profile(
        PROFILE.model_copy(update={"model": Model(name="a", server="llama.cpp")}),
        probe_profiles.build_profile_path("a"),
    )
    setup_of, _ = build_setup_lookup("auto", Endpoint(f"{scripted.url}/v1", "llama.cpp"))
    assert setup_of is not None
    assert setup_of("gpt-4o") == PROFILE.setup


def test_model_details_are_read_from_the_server(scripted):
    """llama.cpp reports file and template, Ollama digest and template."""
    scripted.on(
        "/props",
        as_json(
            200,
            {"model_path": "/m/x.gguf", "chat_template": "{{ t }}", "chat_template_caps": {"supports_tools": False}},
        ),
    )
    scripted.on("/api/show", as_json(200, {"template": "{{ t }}"}))
    scripted.on("/api/tags", as_json(200, {"models": [{"name": "y:latest", "digest": "0123456789abcdef99"}]}))
    llama = model_queries.query_model(Endpoint(f"{scripted.url}/v1", "llama.cpp"), "x")
    ollama = model_queries.query_model(Endpoint(f"{scripted.url}/v1", "ollama"), "y")
    assert (llama.file, ollama.digest) == ("x.gguf", "0123456789abcdef")
    assert llama.template == ollama.template != ""
    assert model_queries.template_supports_tools(Endpoint(f"{scripted.url}/v1", "llama.cpp")) is False
    assert model_queries.template_supports_tools(Endpoint(f"{scripted.url}/v1", "ollama")) is None


def test_profiles_are_in_the_configuration_directory_on_windows(tmp_path, monkeypatch):
    monkeypatch.delenv("XDG_CONFIG_HOME")
    monkeypatch.setenv("APPDATA", str(tmp_path / "Roaming"))
    with monkeypatch.context() as patched:
        patched.setattr("sys.platform", "win32")
        directory = probe_profiles.find_profile_directory()
    assert directory == tmp_path / "Roaming" / "toolcall-adapter" / "profiles"
