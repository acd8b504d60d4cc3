"""Earlier paths of the engine integrations: ``adapter.engines.sglang``, ``adapter.engines.ray_serve:app``."""

from adapter import integrations
from adapter.integrations import engines

__path__ = [*engines.__path__, *integrations.__path__]
