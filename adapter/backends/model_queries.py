"""Query model servers about their models: identity, chat template and support for tools."""

from __future__ import annotations

import hashlib
from pathlib import PurePath

from pydantic import BaseModel, ConfigDict

from adapter.backends.endpoint_discovery import Endpoint, get_object, query_property
from adapter.core.events import Json


class Model(BaseModel):
    """The identity of a model, as reported by its server. ``file`` and ``digest`` distinguish models with the same
    name. ``template`` is a hash of the chat template. All three are empty if not reported."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    name: str
    server: str = "openai"
    base_url: str = ""
    file: str = ""
    digest: str = ""
    template: str = ""


def query_model(endpoint: Endpoint, name: str) -> Model:
    """Query the server for the identity of the model ``name``. llama.cpp has only one, and ignores the name."""
    model = Model(name=name, server=endpoint.kind, base_url=endpoint.display_url)
    if endpoint.kind == "llama.cpp":
        props = get_object(f"{endpoint.root}/props")
        file, template = str(props.get("model_path") or ""), props.get("chat_template")
        return model.model_copy(update={"file": PurePath(file).name, "template": _hash(template)})
    if endpoint.kind == "ollama":
        details = get_object(f"{endpoint.root}/api/show", {"model": name})
        entries = get_object(f"{endpoint.root}/api/tags").get("models")
        known = [entry for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []
        digest = next((entry.get("digest") for entry in known if entry.get("name") in (name, f"{name}:latest")), "")
        return model.model_copy(update={"digest": str(digest or "")[:16], "template": _hash(details.get("template"))})
    return model


def query_template(endpoint: Endpoint) -> str | None:
    """Return the model's chat template in Jinja, or None if the server does not report it."""
    template = query_property(endpoint, {"llama.cpp": ("/props", "chat_template")})
    return template if isinstance(template, str) else None


def template_supports_tools(endpoint: Endpoint) -> bool | None:
    """Return whether the template supports tools, or None if unknown. If it does not, llama.cpp drops the tools."""
    supported = query_property(endpoint, {"llama.cpp": ("/props", "chat_template_caps", "supports_tools")})
    return supported if isinstance(supported, bool) else None


def _hash(template: Json) -> str:
    return hashlib.sha256(template.encode("utf-8", "replace")).hexdigest()[:16] if isinstance(template, str) else ""
