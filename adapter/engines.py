"""Deprecated import paths, kept for existing configurations: ``adapter.engines.sglang`` is
`adapter.integrations.engines.sglang`, and so on."""

from adapter import integrations
from adapter.integrations import engines

__path__ = [*engines.__path__, *integrations.__path__]
