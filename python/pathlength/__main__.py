"""The `pathlength` command."""

import os
import sys

from ._command import COMMAND


def main() -> None:
    os.execv(COMMAND, ["pathlength", *sys.argv[1:]])


if __name__ == "__main__":
    main()
