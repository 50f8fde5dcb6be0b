"""`python -m exactformer` is the command `exactformer`."""

import sys

from exactformer.cli import main

if __name__ == "__main__":
    sys.exit(main())
