"""The command `rowsep`, ready for a Ctrl-C while what takes long to import is imported."""

import os
import signal
import sys


def main() -> int:
    """Run `rowsep.packing.cli`; exit code 130 on a Ctrl-C while it is imported."""
    # leaving at once: an exception out of the midst of an import may be turned into another
    before = signal.signal(signal.SIGINT, lambda *_: os._exit(130))
    try:
        from .packing.extras import extra  # torch takes a second or more

        with extra("cli"):
            from .packing.cli import main as run
    except ModuleNotFoundError as error:  # of an extra: the message is one line
        print(f"rowsep: {error}", file=sys.stderr)
        return 2

    signal.signal(signal.SIGINT, before)
    return run()


if __name__ == "__main__":
    sys.exit(main())
