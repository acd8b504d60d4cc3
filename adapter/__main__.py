"""`python -m adapter` is the command `adapter`."""

from adapter.commands.cli import main

main()
