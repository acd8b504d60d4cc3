"""Detect models that are too small to choose tools. `adapter.prompting.intent.guided_choice` helps them.

llama.cpp reports the number of parameters in ``/v1/models``, and Ollama in ``/api/show``. Other servers do not report
it.
"""

from __future__ import annotations

import threading

from adapter.backends.endpoint_discovery import MAX_MODELS, Endpoint, Kind, query_property
from adapter.prompting.intent.guided_choice import GuidedChoiceSettings

SMALL = 400_000_000
"""Maximum number of parameters of a small model. Guided tool choice was tested with a model of 135 million parameters;
models with 500 million do better without it."""
INVENTIVE = 1_000_000_000
"""Maximum number of parameters of a model that is assumed to invent argument values. A model with 500 million
parameters invented some."""


class SmallModelCheck:
    """Checks the models of ``endpoint``. ``mode`` is one of `GUIDE_MODES`; with ``auto``, the model's size decides."""

    def __init__(self, endpoint: Endpoint, mode: str) -> None:
        self._endpoint, self._mode = endpoint, mode
        self._known: dict[str, GuidedChoiceSettings | None] = {}
        self._lock = threading.Lock()

    def find_guided_choice(self, model: str) -> GuidedChoiceSettings | None:
        """Return the settings of guided tool choice for ``model``, or None. The first call queries the server."""
        if self._mode != "auto":
            return GuidedChoiceSettings() if self._mode == "on" else None
        with self._lock:
            if model not in self._known:
                count = query_parameter_count(self._endpoint, model)
                if len(self._known) >= MAX_MODELS:
                    self._known.clear()
                self._known[model] = GuidedChoiceSettings() if count is not None and count <= SMALL else None
            return self._known[model]

    def explain(self, model: str) -> str:
        """Explain to the user why tool choice is guided."""
        why = f"because the server reports that {model or 'its model'} is small"
        why = "as requested" if self._mode == "on" else why
        return f"guided tool choice: the wording of the request selects the tool, {why} (--guide off turns this off)"


def invents_values(endpoint: Endpoint, model: str) -> bool:
    """Return whether the model may invent values in an enforced call because it is very small, by the size that the
    server reports."""
    count = query_parameter_count(endpoint, model)
    return count is not None and count <= INVENTIVE


_PARAMETERS: dict[Kind, tuple[str | int, ...]] = {
    "llama.cpp": ("/v1/models", "data", 0, "meta", "n_params"),  # llama.cpp has one model
    "ollama": ("/api/show", "model_info", "general.parameter_count"),
}


def query_parameter_count(endpoint: Endpoint, model: str) -> int | None:
    """Return the number of parameters of ``model``, or None if its server does not report it."""
    count = query_property(endpoint, _PARAMETERS, model) if model or endpoint.kind == "llama.cpp" else None
    return count if isinstance(count, int) and count > 0 else None
