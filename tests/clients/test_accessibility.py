"""axe-core finds nothing serious on the pages, light and dark, as files and live; from npm, once."""

from __future__ import annotations

import pytest

from tests.clients.environments import Client

pytestmark = [pytest.mark.clients, pytest.mark.timeout(300)]

AXE = Client("axe-core", ("axe-core",), (), is_node=True)
