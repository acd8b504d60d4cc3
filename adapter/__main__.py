"""`python -m adapter` is the command `adapter`."""

from adapter.cli.main import main

main()
