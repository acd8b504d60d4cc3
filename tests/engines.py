"""A real llama.cpp with a model of 113 KB: random weights, one layer, a vocabulary of bytes.

The model is random, so any sense in its answers comes from the grammar.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Sequence
from math import prod
from pathlib import Path
from random import Random

WIDTH, HEADS, FEED_FORWARD, SPECIAL = 32, 2, 64, 3
BYTES = SPECIAL + 256
TEMPLATE = "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}assistant:"

# GGUF, version 3 (https://github.com/ggml-org/ggml/blob/master/docs/gguf.md): little-endian, counts and lengths in
# 64 bits, types and other numbers in 32, tensors aligned to 32 bytes.
UINT32, INT32, FLOAT32, BOOL, STRING, ARRAY = 4, 5, 6, 7, 8, 9
UNKNOWN, CONTROL, USER_DEFINED, BYTE = 2, 3, 4, 6
ALIGNMENT = 32
SEED = 1
"""With these weights, strings are closed after some hundred bytes; with others, hardly one before the context ends."""
PACKED = {UINT32: "<I", INT32: "<i", FLOAT32: "<f", BOOL: "<?"}


def write_random_gguf(
    path: Path,
    context_length: int = 4096,
    template: str = TEMPLATE,
    own_tokens: Sequence[str] = (),
    control_tokens: Sequence[str] = (),
) -> Path:
    """Write a GGUF file that llama.cpp loads in 10 ms. Its bytes are always the same, and a token is a byte.

    ``own_tokens``: texts that are one token each, as Qwen's vocabulary has ``<tool_call>``; ``control_tokens`` are
    single tokens where special tokens are parsed.
    """
    vocabulary = BYTES + len(own_tokens) + len(control_tokens)
    texts = ["<unk>", "<s>", "</s>", *(f"<0x{n:02X}>" for n in range(256)), *own_tokens, *control_tokens]
    kinds = [UNKNOWN, CONTROL, CONTROL, *[BYTE] * 256]
    kinds += [USER_DEFINED] * len(own_tokens) + [CONTROL] * len(control_tokens)
    settings = [
        ("general.architecture", STRING, "llama"),
        ("llama.context_length", UINT32, context_length),
        ("llama.embedding_length", UINT32, WIDTH),
        ("llama.block_count", UINT32, 1),
        ("llama.feed_forward_length", UINT32, FEED_FORWARD),
        ("llama.attention.head_count", UINT32, HEADS),
        ("llama.attention.head_count_kv", UINT32, HEADS),
        ("llama.attention.layer_norm_rms_epsilon", FLOAT32, 1e-5),
        ("llama.rope.dimension_count", UINT32, WIDTH // HEADS),
        ("llama.vocab_size", UINT32, vocabulary),
        ("tokenizer.ggml.model", STRING, "llama"),
        ("tokenizer.ggml.tokens", ARRAY, (STRING, texts)),
        ("tokenizer.ggml.scores", ARRAY, (FLOAT32, [0.0] * vocabulary)),
        ("tokenizer.ggml.token_type", ARRAY, (INT32, kinds)),
        ("tokenizer.ggml.unknown_token_id", UINT32, 0),
        ("tokenizer.ggml.bos_token_id", UINT32, 1),
        ("tokenizer.ggml.eos_token_id", UINT32, 2),
        ("tokenizer.ggml.add_space_prefix", BOOL, False),
        ("tokenizer.chat_template", STRING, template),
    ]
    tensors = list(random_tensors(Random(SEED), vocabulary))
    header = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(settings))
    header += b"".join(encoded(key, STRING) + struct.pack("<I", kind) + encoded(it, kind) for key, kind, it in settings)
    offset = 0
    for name, shape, values in tensors:
        # The innermost dimension comes first; the type 0 is 32-bit floats.
        header += encoded(name, STRING) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *reversed(shape), 0, offset)
        offset += len(padded(values.tobytes()))
    path.write_bytes(padded(header) + b"".join(padded(values.tobytes()) for _, _, values in tensors))
    return path


def random_tensors(random: Random, vocabulary: int) -> list[tuple[str, tuple[int, ...], array[float]]]:
    """Return the name, shape and values of each tensor of a Llama with one layer."""

    def normal(name: str, *shape: int) -> tuple[str, tuple[int, ...], array[float]]:
        return f"{name}.weight", shape, array("f", (random.gauss(0, 0.3) for _ in range(prod(shape))))

    attention = [normal(f"blk.0.{name}", WIDTH, WIDTH) for name in ("attn_q", "attn_k", "attn_v", "attn_output")]
    norms = ("output_norm", "blk.0.attn_norm", "blk.0.ffn_norm")
    return [
        normal("token_embd", vocabulary, WIDTH),
        normal("output", vocabulary, WIDTH),
        *attention,
        normal("blk.0.ffn_gate", FEED_FORWARD, WIDTH),
        normal("blk.0.ffn_up", FEED_FORWARD, WIDTH),
        normal("blk.0.ffn_down", WIDTH, FEED_FORWARD),
        *((f"{name}.weight", (WIDTH,), array("f", [1.0] * WIDTH)) for name in norms),
    ]


def encoded(value: object, kind: int) -> bytes:
    """Encode a value of a GGUF header. Arrays are given as their element type and elements."""
    if kind == STRING:
        text = str(value).encode()
        return struct.pack("<Q", len(text)) + text
    if isinstance(value, tuple):
        inner, items = value
        return struct.pack("<IQ", inner, len(items)) + b"".join(encoded(item, inner) for item in items)
    return struct.pack(PACKED[kind], value)


def padded(part: bytes) -> bytes:
    return part + bytes(-len(part) % ALIGNMENT)


ONLY_ASCII = {"logit_bias": [[token, -100] for token in (0, 1, *range(SPECIAL + 128, SPECIAL + 256))]}
"""Keeps random bytes from forming text that is not UTF-8, and out <unk> and <s>, which count as
characters for a grammar but are not written out. A grammar can still force any byte."""
