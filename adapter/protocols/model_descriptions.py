"""Describe a model server's models in the formats of Anthropic, Ollama and LM Studio.

Their clients expect sizes and capabilities. Sources: https://platform.claude.com/docs/en/api/models,
https://github.com/ollama/ollama/blob/main/docs/api.md and https://lmstudio.ai/docs/app/api/endpoints/rest.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, field
from datetime import UTC, datetime

from adapter.core.events import Json, JsonObject
from adapter.protocols.usage import get_object

NEVER = "0001-01-01T00:00:00Z"
"""Ollama's expiry time of a model that stays loaded."""
_FAMILY = re.compile(r"[a-z]+[\d.]*", re.IGNORECASE)
_PARAMETERS = re.compile(r"(?<![a-z\d])(\d+(?:\.\d+)?[bm])(?![a-z\d])", re.IGNORECASE)
_QUANTIZATION = re.compile(r"(?<![a-z\d])((?:i?q\d|bf16|f16|f32|fp8|mxfp4|awq|gptq)(?:_\w+)*)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ModelDescription:
    """A model as described by its server. The family, size and quantization are taken from the model's name."""

    name: str
    created: int = 0
    size: int = 0
    """Size in bytes; 0 if unknown."""
    context: int = 0
    """Context size in tokens; 0 if unknown."""
    has_images: bool = False
    """True if the model accepts images."""
    has_reasoning: bool = False
    """True if the model's template supports reasoning."""
    listed: JsonObject = field(default_factory=dict)
    """The entry of ``/v1/models``."""

    @property
    def base_name(self) -> str:
        return self.name.replace("\\", "/").rpartition("/")[2].removesuffix(".gguf")

    @property
    def family(self) -> str:
        match = _FAMILY.match(self.base_name)
        return match[0].lower() if match else "unknown"

    @property
    def quantization(self) -> str:
        match = _QUANTIZATION.search(self.base_name)
        return match[1].upper() if match else ""

    @property
    def capabilities(self) -> list[str]:
        """The model's capabilities, as Ollama names them. This server adds ``tools`` to every model."""
        images, reasoning = ["vision"] * self.has_images, ["thinking"] * self.has_reasoning
        return ["completion", "tools", *images, *reasoning]

    @property
    def details(self) -> JsonObject:
        size = _PARAMETERS.search(self.base_name)
        return {
            "parent_model": "",
            "format": "gguf",
            "family": self.family,
            "families": [self.family],
            "parameter_size": size[1].upper() if size else "",
            "quantization_level": self.quantization,
        }

    @property
    def modified_at(self) -> str:
        return datetime.fromtimestamp(self.created, UTC).isoformat().replace("+00:00", "Z")

    def to_openai(self) -> JsonObject:
        """Return an entry of ``/v1/models``."""
        head = {"id": self.name, "object": "model", "created": self.created, "owned_by": "model server"}
        return {**self.listed, **head, "owned_by": str(self.listed.get("owned_by") or head["owned_by"])}

    def to_anthropic(self) -> JsonObject:
        """Return an entry of Anthropic's ``/v1/models``."""
        head = {"type": "model", "id": self.name, "display_name": self.name, "created_at": self.modified_at}
        return {**head, "lifecycle": "active", "max_input_tokens": self.context or None, "max_tokens": None}

    def to_tag(self) -> JsonObject:
        """Return an entry of ``/api/tags``."""
        digest = hashlib.sha256(self.name.encode("utf-8", "replace")).hexdigest()
        head = {"name": self.name, "model": self.name, "modified_at": self.modified_at, "size": self.size}
        return {**head, "digest": digest, "details": self.details}

    def to_loaded(self) -> JsonObject:
        """Return an entry of ``/api/ps``."""
        return {**self.to_tag(), "size_vram": 0, "expires_at": NEVER, "context_length": self.context}

    def to_show(self) -> JsonObject:
        """Return the answer of ``/api/show``."""
        info: JsonObject = {"general.architecture": self.family, "general.basename": self.base_name}
        info |= {f"{self.family}.context_length": self.context} if self.context else {}
        empty = dict.fromkeys(("license", "modelfile", "parameters", "template"), "")
        modified = {"modified_at": self.modified_at}
        return {**empty, **modified, "details": self.details, "model_info": info, "capabilities": self.capabilities}

    def to_lm_studio(self) -> JsonObject:
        """Return an entry of LM Studio's ``/api/v0/models``."""
        return {
            "id": self.name,
            "object": "model",
            "type": "vlm" if self.has_images else "llm",
            "publisher": "",
            "arch": self.family,
            "compatibility_type": "gguf",
            "quantization": self.quantization,
            "state": "loaded",
            "max_context_length": self.context,
            "loaded_context_length": self.context,
            "capabilities": ["tool_use"],
        }


def describe_models(
    models: JsonObject, context: int, *, has_images: bool, has_reasoning: bool
) -> list[ModelDescription]:
    """Return the models in ``models``, an answer from ``/v1/models``. ``context`` is the context size, in tokens, of
    models that do not report it."""
    entries = [each for each in models.get("data") or () if isinstance(each, dict) and "id" in each]
    return [
        ModelDescription(
            str(each["id"]),
            _find_first(each.get("created")),
            _find_first(get_object(each.get("meta")).get("size")),
            _find_first(each.get("max_model_len"), context, get_object(each.get("meta")).get("n_ctx_train")),
            has_images,
            has_reasoning,
            each,
        )
        for each in entries
    ]


def _find_first(*values: Json) -> int:
    return next((value for value in values if isinstance(value, int) and value > 0), 0)
