"""Schemas simplified for small grammars."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from adapter.tools.schema_simplify import REQUIRED_KEY, simplify_schema


class Inner(BaseModel):
    """Not for the model."""

    title: Annotated[str, Field(description="A title")]
    kind: Literal["a", "b"] = "a"


class Outer(BaseModel):
    """Not in the parameters."""

    inner: Annotated[Inner | None, Field(description="One")] = None
    many: list[Inner] = []
    tolerated: Annotated[str, Field(json_schema_extra={REQUIRED_KEY: True})] = "."
    size: int


def test_references_are_inline_and_optional_is_collapsed():
    """A property called title stays, but the keyword is removed."""
    inner = {
        "type": "object",
        "properties": {
            "title": {"type": "string", "description": "A title"},
            "kind": {"type": "string", "enum": ["a", "b"], "default": "a"},
        },
        "required": ["title"],
    }
    assert simplify_schema(Outer) == {
        "type": "object",
        "properties": {
            "inner": inner | {"description": "One"},
            "many": {"type": "array", "items": inner, "default": []},
            "tolerated": {"type": "string"},
            "size": {"type": "integer"},
        },
        "required": ["tolerated", "size"],
    }


def test_a_tool_without_arguments_has_an_empty_object():
    """Servers reject a missing properties key."""

    class Nothing(BaseModel):
        pass

    assert simplify_schema(Nothing) == {"type": "object", "properties": {}}


def test_values_of_a_mapping_keep_their_type():
    class Prices(BaseModel):
        by_name: dict[str, int]
        notes: dict[str, Any]

    properties = simplify_schema(Prices)["properties"]
    assert properties == {
        "by_name": {"type": "object", "additionalProperties": {"type": "integer"}},
        "notes": {"type": "object"},
    }
