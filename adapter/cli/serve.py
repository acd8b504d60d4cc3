"""`adapter serve`: an OpenAI-compatible server that adds tool calling to a model server."""

from __future__ import annotations

from adapter.cli.malloc_tuning import limit_malloc_arenas
from adapter.cli.options import takes_settings
from adapter.cli.serve_settings import ServeSettings
from adapter.core.errors import UsageError
from adapter.core.install_advice import build_install_command


@takes_settings(ServeSettings)
def serve(settings: ServeSettings) -> None:
    """Serve an OpenAI-compatible API that adds tool calling."""
    try:
        from adapter.server.app import serve as run_server
    except ImportError as error:
        raise UsageError(f"{error.name} is not installed: {build_install_command('server')}") from error

    limit_malloc_arenas()
    run_server(settings.build_server_settings())
