"""Shared results hold only public text, and the results in fixtures/shared_results are the table of docs/models.md.

``python -m tests.generate`` updates the table.
"""

from __future__ import annotations

import getpass
import json
import platform
import re
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from adapter.backends.endpoint_discovery import Endpoint
from adapter.backends.engine_details import (
    EngineDetails,
    find_public_family,
    normalize_quantization,
    query_engine_details,
)
from adapter.backends.model_queries import Model
from adapter.cli.probe_runner import run_probe
from adapter.cli.probe_settings import ProbeSettings
from adapter.core.errors import UsageError
from adapter.evaluation.probe.shared_result import (
    KINDS,
    SharedResult,
    SharedTrial,
    check_shareable,
    find_private_form,
    format_parameters,
    list_machine_names,
)
from adapter.evaluation.probe.tasks import TASKS
from tests.evaluation.probe.test_probe import clever, native
from tests.live_upstream import LiveUpstream
from tests.scripted_server import as_json, delta

ROOT = Path(__file__).parent.parent.parent.parent
FOLDER = ROOT / "fixtures" / "shared_results"
PAGE = ROOT / "docs" / "models.md"
FILES = sorted(FOLDER.glob("*"))
ENGINES = {"ollama": "Ollama", "lmstudio": "LM Studio", "vllm": "vLLM", "sglang": "SGLang", "koboldcpp": "KoboldCpp"}
BEGIN, END = "<!-- table: models -->\n", "<!-- end -->"


def with_table(text: str) -> str:
    before, _, rest = text.partition(BEGIN)
    head = ["model", "engine", "server's own", "best", *KINDS, "setup"]
    aligned = [*["---"] * 2, *["--:"] * (len(KINDS) + 2), "---"]
    rows = [f"| {' | '.join(cells)} |" for cells in (head, aligned, *sorted(map(row, FILES)))]
    return before + BEGIN + "\n".join(rows) + "\n" + rest[rest.index(END) :]


def row(file: Path) -> list[str]:
    result = SharedResult.model_validate_json(file.read_bytes())
    model, engine, best = result.model, result.engine, result.best
    name = " ".join(filter(None, (model.family, format_parameters(model.parameters), model.quantization)))
    kinds = [f"{best.scores[kind].correct} of {best.scores[kind].tasks}" if best else "" for kind in KINDS]
    setup = f"{setup_name(best)}{'' if result.is_whole else ' (incomplete)'}" if best else "no correct call"
    version = f"{ENGINES.get(engine.kind, engine.kind)} {engine.version}".strip()
    return [name, version, total(result.native), total(best) if best else "", *kinds, setup]


def total(trial: SharedTrial) -> str:
    return f"{trial.correct} of {trial.tasks}"


def setup_name(trial: SharedTrial) -> str:
    settings = trial.settings
    if settings.native:
        return "server's own"
    return f"{settings.format}, {'own prompt' if settings.template else settings.style}, {settings.constraint}"


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_file_holds_only_public_text(file):
    text = file.read_text(encoding="utf-8")
    result = SharedResult.model_validate_json(text)
    assert text == result.to_json(), "write it with `adapter probe --share`"
    assert re.sub(r"-\d+\.json$", ".json", file.name) == result.file_name
    assert not re.search(r"[/\\~@]|\b\d+(\.\d+){3}\b|localhost", text)


def shared(answer: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, model: str = "acme/qwen3:8b") -> SharedResult:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    file = tmp_path / "new folder" / "result.json"
    with LiveUpstream(answer) as upstream:
        assert run_probe(ProbeSettings(upstream.url, model, "hermes", share=file)) == 0
    text = file.read_text(encoding="utf-8")
    assert not [word for word in ("acme", "127.0.0.1", "http", str(tmp_path)) if word in text]
    return SharedResult.model_validate_json(text)


def test_probe_shares_its_scores(tmp_path, monkeypatch):
    result = shared(clever, tmp_path, monkeypatch)
    assert (result.model.family, result.engine.kind, result.is_whole) == ("qwen3", "openai", True)
    assert result.best is not None
    assert (result.best.correct, result.best.tasks, result.native.correct) == (24, 24, 8)
    assert {kind: score.tasks for kind, score in result.best.scores.items()} == {
        "one call": 9,
        "nested values": 4,
        "several calls": 1,
        "after a result": 2,
        "no call": 8,
    }
    assert result.native.scores["no call"].correct == 8
    assert result.file_name == "qwen3-openai.json"


def test_native_calling_can_be_the_best(tmp_path, monkeypatch):
    result = shared(native, tmp_path, monkeypatch)
    assert result.best is not None
    assert result.best.settings.native
    assert result.best == result.native


def test_result_without_a_correct_call_is_shared(tmp_path, monkeypatch):
    """A table only of good models would mislead. The exit code reports the missing profile."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    file = tmp_path / "result.json"
    with LiveUpstream(lambda _: iter([delta("Well.", "stop")])) as upstream:
        assert run_probe(ProbeSettings(upstream.url, "smollm2", "hermes", share=file)) == 1
    result = SharedResult.model_validate_json(file.read_text(encoding="utf-8"))
    assert result.best is None
    assert result.native.correct == 8


def test_unknown_family_is_refused_before_the_probe(tmp_path, monkeypatch):
    """After ten minutes it would be too late."""
    with LiveUpstream(clever) as upstream, pytest.raises(UsageError, match=r"family is unknown.*qwen3-8b"):
        run_probe(ProbeSettings(upstream.url, "acme", "hermes", share=tmp_path / "result.json"))
    assert not (tmp_path / "result.json").exists()


def test_format_file_is_refused():
    with pytest.raises(UsageError, match="built-in format"):
        check_shareable(EngineDetails("openai", "", "qwen3", "", None), "mine.toml")


PRIVATE = {
    "/home/ann/models": "a path",
    "C:\\Users\\ann": "a path",
    "~ann": "a path",
    "secret.gguf": "a path",
    "localhost": "a host",
    "10.1.2.3": "a host",
    "fe80::1": "a host",
    "box:8080": "a host",
    "gpu.example.com": "a host",
    "nas.local": "a host",
    "ann@box": "a user name",
    "sk-abcdefghijklmnopqrstuvwx": "a key",
    "0123456789abcdef0123456789abcdef01234567": "a key",
}


@pytest.mark.parametrize("text", PRIVATE)
def test_private_text_is_refused(text):
    assert find_private_form(text) == PRIVATE[text]
    result = json.loads(FILES[0].read_text(encoding="utf-8"))
    for part, key in (
        ("engine", "version"),
        ("model", "family"),
        ("model", "quantization"),
        ("model", "template_hash"),
    ):
        changed = {**result, part: {**result[part], key: text}}
        with pytest.raises(ValidationError):
            SharedResult.model_validate(changed)
    with pytest.raises(UsageError, match=r"--share: the version .* looks like"):
        check_shareable(EngineDetails("vllm", text, "qwen3", "", None), "auto")


def test_names_of_this_machine_are_refused(monkeypatch):
    monkeypatch.setattr(getpass, "getuser", lambda: "ann")
    monkeypatch.setattr(platform, "node", lambda: "lab7.example.org")
    monkeypatch.setenv("HOME", "/home/ann-smith")
    assert set(list_machine_names()) == {"ann", "ann-smith", "lab7", "lab7.example.org"}
    with pytest.raises(UsageError, match="user or host name"):
        check_shareable(EngineDetails("ollama", "0.9-ann", "qwen3", "", None), "auto")
    monkeypatch.setattr(getpass, "getuser", lambda: "qwen3")
    check_shareable(EngineDetails("ollama", "0.9.1", "qwen3", "Q4_K_M", None), "auto")


@pytest.mark.parametrize("text", ["b6789-0123abcd", "0.9.1.dev12+g0123abcd", "xllamacpp 2026.10.11549", "Q4_K_M"])
def test_public_text_is_accepted(text):
    assert find_private_form(text) == ""


def test_unknown_fields_and_impossible_counts_are_refused():
    result = json.loads(FILES[0].read_text(encoding="utf-8"))
    with pytest.raises(ValidationError, match="extra"):
        SharedResult.model_validate({**result, "host": "box"})
    result["native"]["scores"]["no call"]["correct"] = 99
    with pytest.raises(ValidationError, match="correct <= valid <= tasks"):
        SharedResult.model_validate(result)


@pytest.mark.parametrize(
    ("name", "family"),
    [
        ("SmolLM2-135M-Instruct.Q4_1.gguf", "smollm2"),
        ("/home/ann/acme/Qwen2.5-Coder-0.5B-Instruct-Q4_K_M.gguf", "qwen2.5-coder"),
        ("meta-llama/Llama-3.1-8B", "llama-3.1"),
        ("llama-8b", "llama"),
        ("gpt-oss:20b", "gpt-oss"),
        ("acme-secret", ""),
        ("ann/acme:latest", ""),
    ],
)
def test_family_is_the_public_part_of_a_name(name, family):
    assert find_public_family(name) == family


@pytest.mark.parametrize(
    ("reported", "short"),
    [("(guessed) all F32", "F32"), ("Q4_K - Medium", "Q4_K_M"), ("Q4_1", "Q4_1"), ("IQ2_XXS - 2.06 bpw", "IQ2_XXS")],
)
def test_quantization_is_short(reported, short):
    assert normalize_quantization(reported) == short


@pytest.mark.parametrize(("count", "label"), [(None, ""), (7_620_000_000, "7.6B"), (134_515_008, "135M"), (950, "950")])
def test_parameters_are_counted_in_short(count, label):
    assert format_parameters(count) == label


def test_every_kind_has_tasks():
    assert {task.kind for task in TASKS} == set(KINDS)


OLLAMA = {
    "/api/version": {"version": "0.12.3"},
    "/api/show": {
        "details": {"family": "qwen3", "quantization_level": "Q4_K_M"},
        "model_info": {"general.parameter_count": 8190735360},
    },
}
LM_STUDIO = {"/api/v0/models": {"data": [{"id": "mine", "arch": "gemma3", "quantization": "Q8_0"}]}}
LLAMA_CPP = {
    "/props": {"build_info": "b6789-0123abc", "model_ftype": "Q4_K - Medium"},
    "/v1/models": {"data": [{"meta": {"n_params": 134515008}}]},
}


@pytest.mark.parametrize(
    ("kind", "pages", "expected"),
    [
        ("ollama", OLLAMA, ("0.12.3", "qwen3", "Q4_K_M", 8190735360)),
        ("lmstudio", LM_STUDIO, ("", "gemma3", "Q8_0", None)),
        ("llama.cpp", LLAMA_CPP, ("b6789-0123abc", "", "Q4_K_M", 134515008)),
        ("vllm", {"/version": {"version": "0.11.0"}}, ("0.11.0", "", "", None)),
        ("ollama", {}, ("", "", "", None)),
    ],
)
def test_engines_report_their_model(scripted, kind, pages, expected):
    for path, body in pages.items():
        scripted.on(path, as_json(200, body))
    found = query_engine_details(Endpoint(f"{scripted.url}/v1", kind), Model(name="mine"))
    assert (found.version, found.family, found.quantization, found.parameters) == expected
