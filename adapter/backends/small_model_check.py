"""Which models are too small to choose tools by themselves, as their servers say: they get help.

They get the assistance of `adapter.prompting.intent.assist`. llama.cpp tells the number of parameters in
``/v1/models``, Ollama in ``/api/show``; of others it is not known.
"""

from __future__ import annotations

import threading

from adapter.backends.endpoint_discovery import MAX_MODELS, Endpoint, get_json
from adapter.core.events import Json
from adapter.prompting.intent.assist import AssistSettings

SMALL = 400_000_000
"""Parameters. The help was measured with 135 million, and models of 500 million call better by themselves."""


class SmallModelCheck:
    """For the models of ``endpoint``. ``mode``: one of `GUIDE_MODES`; auto goes by the size."""

    def __init__(self, endpoint: Endpoint, mode: str) -> None:
        self._endpoint, self._mode = endpoint, mode
        self._known: dict[str, AssistSettings | None] = {}
        self._asking = threading.Lock()

    def assists_for(self, model: str) -> AssistSettings | None:
        """The help for ``model``; None where it needs none. Asks the server, the first time."""
        if self._mode != "auto":
            return AssistSettings() if self._mode == "on" else None
        with self._asking:
            if model not in self._known:
                count = parameter_count(self._endpoint, model)
                if len(self._known) >= MAX_MODELS:
                    self._known.clear()
                self._known[model] = AssistSettings() if count is not None and count <= SMALL else None
            return self._known[model]

    def explanation(self, model: str) -> str:
        """For people, where `of` gives help."""
        why = "as asked for" if self._mode == "on" else f"the server says that {model or 'its model'} is small"
        return f"guided: {why}, so words decide whether and what is called (--guide off leaves that to the model)"


def parameter_count(endpoint: Endpoint, model: str, timeout_s: float = 2.0) -> int | None:
    """How many parameters ``model`` has; None where its server does not tell. llama.cpp has one model."""
    if endpoint.kind == "llama.cpp":
        return _count(_body(endpoint, "/v1/models", timeout_s), "data", 0, "meta", "n_params")
    if endpoint.kind == "ollama" and model:
        shown = _body(endpoint, "/api/show", timeout_s, {"model": model})
        return _count(shown, "model_info", "general.parameter_count")
    return None


def _body(endpoint: Endpoint, path: str, timeout_s: float, sent: Json = None) -> Json:
    answer = get_json(endpoint.root + path, timeout_s, sent)
    return answer.body if answer is not None and answer.status == 200 else None


def _count(body: Json, *place: str | int) -> int | None:
    for key in place:
        try:
            body = body[key]
        except (KeyError, IndexError, TypeError):
            return None
    return body if isinstance(body, int) and body > 0 else None
