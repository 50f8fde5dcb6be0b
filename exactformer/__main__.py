"""`python -m exactformer` is the command `exactformer`."""

from exactformer.cli import main

if __name__ == "__main__":
    main()
