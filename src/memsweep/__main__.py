"""`python -m memsweep` is `memsweep`."""

from memsweep.cli.command import main

if __name__ == "__main__":
    raise SystemExit(main())
