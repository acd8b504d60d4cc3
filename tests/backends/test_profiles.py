"""What a probe found is kept, used for the model it was made for, and doubted when something has changed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.backends import profiles
from adapter.backends.endpoint_discovery import Endpoint
from adapter.backends.profiles import Model, Profile, ProfileScore, ProfileSetup, active_profile, setup_lookup
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
def test_a_profile_is_read_as_it_was_written(tmp_path_factory, name, seconds, native):
    """Any name is safe in TOML and as a file's name."""
    path = tmp_path_factory.mktemp("p") / profiles.path_of(name).name
    profile = Profile(
        model=Model(name=name), use=ProfileSetup(native=native), after=ProfileScore(tasks=1, seconds=seconds)
    )
    profiles.save(profile, path)
    assert profiles.load(path) == profile


def test_the_models_own_profile_is_found_and_told():
    """`auto` takes it, `none` leaves it, a model without one has none."""
    profiles.save(PROFILE, profiles.path_of(MODEL.name))
    profile, (told,) = active_profile("auto", MODEL)
    assert profile == PROFILE
    assert told == "profile of qwen3:4b: hermes, compact, off (12 of 16 right, the server alone 3)"
    assert active_profile("none", MODEL) == (None, [])
    assert active_profile("auto", Model(name="other", server="ollama")) == (None, [])
    assert active_profile("auto", MODEL.model_copy(update={"server": "vllm"})) == (None, [])


@pytest.mark.parametrize(("field", "said"), [("digest", "model has been changed"), ("template", "template has been")])
def test_another_model_of_the_same_name_gets_no_profile_by_itself(field, said):
    """It is told why; who names the profile gets it all the same, and is told, too."""
    profiles.save(PROFILE, profiles.path_of(MODEL.name))
    changed = MODEL.model_copy(update={field: "new"})
    profile, (told,) = active_profile("auto", changed)
    assert profile is None
    assert said in told
    assert "adapter probe" in told
    profile, notes = active_profile("qwen3:4b", changed)
    assert profile == PROFILE
    assert said in notes[1]


def test_a_profile_of_another_version_is_used_and_told():
    """It is most likely still right."""
    profiles.save(PROFILE.model_copy(update={"version": "0.0.1"}), profiles.path_of(MODEL.name))
    profile, notes = active_profile("auto", MODEL)
    assert profile is not None
    assert "made by version 0.0.1" in notes[1]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("version = ", "is not TOML"),
        ("version = '1'", "is not a profile ('model' is missing"),
        ('[model]\nname="x"\n[use]\nstyle="odd"', "use.style"),
    ],
)
def test_a_broken_file_is_not_used_and_says_why(text, said):
    """By itself it is left out; who names it gets the error."""
    path = profiles.path_of("x")
    path.parent.mkdir(parents=True)
    path.write_text(text, encoding="utf-8")
    profile, (told,) = active_profile("auto", Model(name="x"))
    assert profile is None
    assert said in told
    with pytest.raises(UsageError, match=r"profile|TOML"):
        active_profile("x", Model(name="x"))


def test_an_unknown_name_lists_those_there_are():
    profiles.save(PROFILE, profiles.path_of(MODEL.name))
    with pytest.raises(UsageError, match=r"no profile 'qwen9'; there are: qwen3_4b"):
        active_profile("qwen9", MODEL)


def test_each_model_of_a_server_has_its_own(scripted):
    """Ollama serves many; llama.cpp one, whatever requests call it."""
    profiles.save(PROFILE.model_copy(update={"model": Model(name="a", server="ollama")}), profiles.path_of("a"))
    scripted.on(MODELS, as_json(200, {"data": [{"id": "a"}, {"id": "b"}]}))
    setup_of, (told,) = setup_lookup("auto", Endpoint(f"{scripted.url}/v1", "ollama"))
    assert setup_of is not None
    assert (setup_of("a"), setup_of("b")) == (PROFILE.setup, None)
    assert told.startswith("profile of a: ")
    profiles.save(PROFILE.model_copy(update={"model": Model(name="a", server="llama.cpp")}), profiles.path_of("a"))
    setup_of, _ = setup_lookup("auto", Endpoint(f"{scripted.url}/v1", "llama.cpp"))
    assert setup_of is not None
    assert setup_of("gpt-4o") == PROFILE.setup


def test_what_a_server_says_of_its_model(scripted):
    """llama.cpp the file and the template, Ollama the digest and the template."""
    scripted.on(
        "/props",
        as_json(
            200,
            {"model_path": "/m/x.gguf", "chat_template": "{{ t }}", "chat_template_caps": {"supports_tools": False}},
        ),
    )
    scripted.on("/api/show", as_json(200, {"template": "{{ t }}"}))
    scripted.on("/api/tags", as_json(200, {"models": [{"name": "y:latest", "digest": "0123456789abcdef99"}]}))
    llama = profiles.model_of(Endpoint(f"{scripted.url}/v1", "llama.cpp"), "x")
    ollama = profiles.model_of(Endpoint(f"{scripted.url}/v1", "ollama"), "y")
    assert (llama.file, ollama.digest) == ("x.gguf", "0123456789abcdef")
    assert llama.template == ollama.template != ""
    assert profiles.takes_tools(Endpoint(f"{scripted.url}/v1", "llama.cpp")) is False
    assert profiles.takes_tools(Endpoint(f"{scripted.url}/v1", "ollama")) is None
