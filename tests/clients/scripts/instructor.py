"""Structured output by a required tool, then the answer as text."""

import os
from typing import Iterable  # noqa: UP035  # instructor knows this one

import instructor
from openai import OpenAI
from pydantic import BaseModel


class get_weather(BaseModel):  # what the model calls
    """Return the weather of a city."""

    city: str


client = OpenAI(base_url=os.environ["ADAPTER_URL"] + "/v1")
cities = instructor.from_openai(client, mode=instructor.Mode.PARALLEL_TOOLS).chat.completions.create(
    model="m",
    messages=[{"role": "user", "content": "Weather in Bern and Basel?"}],
    response_model=Iterable[get_weather],
)
told = [{"role": "user", "content": " ".join(f"weather of {each.city}" for each in cities)}]
print(client.chat.completions.create(model="m", messages=told).choices[0].message.content)
