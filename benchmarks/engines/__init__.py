"""This program's parsers and the engines' own, inside releases of vLLM and SGLang."""
