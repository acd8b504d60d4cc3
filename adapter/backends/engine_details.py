"""Query a model server for the facts that make two measurements comparable: engine, version, family, quantization.

Sources: llama.cpp's tools/server/README.md (`/props`, `/v1/models`), Ollama's docs/api.md (`/api/show`,
`/api/version`), LM Studio's `/api/v0/models`, vLLM's `/version`, SGLang's `/get_server_info`, and KoboldCpp's
`/api/extra/version`.
"""

from __future__ import annotations

import importlib.metadata
import re
from contextlib import suppress
from dataclasses import dataclass

from adapter.backends.endpoint_discovery import Endpoint, Kind, get_object
from adapter.backends.model_profiles import Model
from adapter.backends.small_model_detection import query_parameter_count
from adapter.core.events import JsonObject
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
"""Matches the names of public model families, with their versions (``qwen2.5-coder``), but not with a number of
parameters (``llama-8b``)."""
_SIZES = {"small": "_S", "medium": "_M", "large": "_L"}
_VERSION_PATHS: dict[Kind, tuple[str, str]] = {
    "llama.cpp": ("/props", "build_info"),
    "ollama": ("/api/version", "version"),
    "vllm": ("/version", "version"),
    "sglang": ("/get_server_info", "version"),
    "koboldcpp": ("/api/extra/version", "version"),
}


@dataclass(frozen=True, slots=True)
class EngineDetails:
    """An engine and its model. If the server does not report a fact, the string is empty, or ``parameters`` is None."""

    kind: Kind
    version: str
    family: str
    quantization: str
    parameters: int | None


def query_engine_details(endpoint: Endpoint, model: Model) -> EngineDetails:
    """Query the server about ``model``. If the name of the model or its file contains a public model family, only this
    family is returned, without the rest of the name."""
    family, quantization = _query_reported_model(endpoint, model.name)
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
    if endpoint.kind not in _VERSION_PATHS:
        return ""
    path, key = _VERSION_PATHS[endpoint.kind]
    version = str(get_object(endpoint.root + path).get(key) or "")
    if version == "b0-unknown":  # the embedded engine, whose build has no number
        with suppress(importlib.metadata.PackageNotFoundError):
            return f"xllamacpp {importlib.metadata.version('xllamacpp')}"
    return version


def _query_reported_model(endpoint: Endpoint, name: str) -> tuple[str, str]:
    """Return the family and the quantization that the server reports."""
    match endpoint.kind:
        case "llama.cpp":
            return "", str(get_object(f"{endpoint.root}/props").get("model_ftype") or "")
        case "ollama":
            details = get_object(f"{endpoint.root}/api/show", {"model": name}).get("details")
            return _get_texts(details if isinstance(details, dict) else {}, "family", "quantization_level")
        case "lmstudio":
            listed = get_object(f"{endpoint.root}/api/v0/models").get("data")
            entries = [each for each in (listed if isinstance(listed, list) else []) if isinstance(each, dict)]
            return _get_texts(next((each for each in entries if each.get("id") == name), {}), "arch", "quantization")
        case _:
            return "", ""


def _get_texts(entry: JsonObject, *keys: str) -> tuple[str, str]:
    first, second = (str(entry.get(key) or "") for key in keys)
    return first, second
