"""Query a model server for its engine and version, and its model's family and quantization, to compare measurements.

Sources: llama.cpp's tools/server/README.md (`/props`, `/v1/models`), Ollama's docs/api.md (`/api/show`,
`/api/version`), LM Studio's `/api/v0/models`, vLLM's `/version`, SGLang's `/get_server_info`, and KoboldCpp's
`/api/extra/version`.
"""

from __future__ import annotations

import importlib.metadata
import re
from contextlib import suppress
from dataclasses import dataclass

from adapter.backends.endpoint_discovery import OF_MODEL, Endpoint, Kind, query_property
from adapter.backends.model_queries import Model
from adapter.backends.small_model_detection import query_parameter_count
from adapter.protocols.model_descriptions import ModelDescription

_FAMILY = re.compile(
    r"""(?ix) (?<![a-z])
    ( apertus | apriel | aya | command-?[ar]\+? | deepseek | devstral | ernie | exaone | falcon | firefunction
    | functiongemma | functionary | gemma | glm | gpt-?oss | granite | hermes | hunyuan | internlm | jamba | kimi | lfm
    | llama | magistral | mimo | minicpm | minimax | ministral | mistral | mixtral | nemotron | olmo | phi | qwen
    | qwq | seed-?oss | smollm | starcoder | tinyllama | xlam | yi )
    (?: [-_]? v? \d+ (?:\.\d+)? (?![\d.]* [bmk] (?![a-z])) )?
    (?: [-_] coder )?"""
)
"""Matches public model families with their versions (``qwen2.5-coder``), but not with a size (``llama-8b``)."""
_SIZES = {"small": "_S", "medium": "_M", "large": "_L"}
_VERSIONS: dict[Kind, tuple[str | int, ...]] = {
    "llama.cpp": ("/props", "build_info"),
    "ollama": ("/api/version", "version"),
    "vllm": ("/version", "version"),
    "sglang": ("/get_server_info", "version"),
    "koboldcpp": ("/api/extra/version", "version"),
}
_FAMILIES: dict[Kind, tuple[str | int, ...]] = {
    "ollama": ("/api/show", "details", "family"),
    "lmstudio": ("/api/v0/models", "data", OF_MODEL, "arch"),
}
_QUANTIZATIONS: dict[Kind, tuple[str | int, ...]] = {
    "llama.cpp": ("/props", "model_ftype"),
    "ollama": ("/api/show", "details", "quantization_level"),
    "lmstudio": ("/api/v0/models", "data", OF_MODEL, "quantization"),
}


@dataclass(frozen=True, slots=True)
class EngineDetails:
    """An inference engine and its model. Strings that the server does not report are empty. ``parameters`` is the
    number of the model's parameters, or None if unknown."""

    kind: Kind
    version: str
    family: str
    quantization: str
    parameters: int | None


def query_engine_details(endpoint: Endpoint, model: Model) -> EngineDetails:
    """Query the server about ``model``. The family is the public model family in the name of the model or its file, or
    else the family that the server reports."""
    family, quantization = (
        str(query_property(endpoint, each, model.name) or "") for each in (_FAMILIES, _QUANTIZATIONS)
    )
    names = (model.file, model.name, family)
    return EngineDetails(
        endpoint.kind,
        _query_version(endpoint),
        next((found for name in names if (found := find_public_family(name))), family),
        normalize_quantization(quantization) or ModelDescription(model.file or model.name).quantization,
        query_parameter_count(endpoint, model.name),
    )


def find_public_family(name: str) -> str:
    """Return the public model family in the name of a model or file, or ""."""
    match = _FAMILY.search(name.replace("\\", "/").rpartition("/")[2])
    return match[0].lower().replace("_", "-") if match else ""


def normalize_quantization(name: str) -> str:
    """Return the usual short name of a quantization: ``Q4_K_M`` for llama.cpp's ``Q4_K - Medium``."""
    short = ModelDescription(name).quantization
    size = re.search(r" - (small|medium|large)", name, re.IGNORECASE)
    return short + _SIZES[size[1].lower()] if size else short


def _query_version(endpoint: Endpoint) -> str:
    version = str(query_property(endpoint, _VERSIONS) or "")
    if version == "b0-unknown":  # the embedded engine, whose build has no number
        with suppress(importlib.metadata.PackageNotFoundError):
            return f"xllamacpp {importlib.metadata.version('xllamacpp')}"
    return version
