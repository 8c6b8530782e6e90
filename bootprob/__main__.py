"""``python -m bootprob``: the command line, where the command ``bootprob`` is not on the path."""

from bootprob.cli.__main__ import main

if __name__ == "__main__":
    main()
