"""Replay recorded conversations offline with the current parser and tools, as a regression test.

smollm2-edit-port: 1 answers, 1 calls, the same
smollm2-search: 1 answers, 1 calls, the same
"""

from pathlib import Path

from adapter import Transcript, replay

RECORDED = Path(__file__).parent.parent / "fixtures" / "transcripts"  # `adapter run --record FILE` writes one

for name in ("smollm2-edit-port", "smollm2-search"):
    transcript = Transcript.from_text((RECORDED / f"{name}.jsonl").read_text(encoding="utf-8"))
    result = replay(transcript)
    print(f"{name}: {result.turns} answers, {result.calls} calls, {result.difference or 'the same'}")
