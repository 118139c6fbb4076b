"""`python -m gramgraph` is the command line."""

import sys

from gramgraph.cli import main

if __name__ == "__main__":
    sys.exit(main())
