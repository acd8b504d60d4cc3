"""Run a recorded conversation again, offline, through today's parser and tools: a test of a prompt, or of an update.

smollm2-edit-port: 1 answers, 1 calls, the same
smollm2-search: 1 answers, 1 calls, the same
"""

from pathlib import Path

from adapter import Transcript, replay

RECORDED = Path(__file__).parent.parent / "fixtures" / "transcripts"  # `adapter run --record FILE` writes one

for name in ("smollm2-edit-port", "smollm2-search"):
    transcript = Transcript.from_text((RECORDED / f"{name}.jsonl").read_text(encoding="utf-8"))
    again = replay(transcript)
    print(f"{name}: {again.turns} answers, {again.calls} calls, {again.difference or 'the same'}")
