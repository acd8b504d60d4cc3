"""For the site: classes of `adapter.values.fields` have the signatures of the dataclasses that they are like."""

from __future__ import annotations

from typing import Any

from griffe import Alias, Extension, Module

LIKE = {"frozen": "dataclasses.dataclass", "mutable": "dataclasses.dataclass", "field": "dataclasses.field"}


class ShownAsDataclasses(Extension):
    """What a module imports of `fields` is taken for what `dataclasses` has in its place."""

    def on_module_members(self, *, mod: Module, **_: Any) -> None:
        for name, member in mod.members.items():
            if isinstance(member, Alias) and member.target_path == f"adapter.values.fields.{name}" and name in LIKE:
                member.target_path = LIKE[name]
