"""`python -m genrw`: the command `genrw`."""

from genrw.main import main

if __name__ == "__main__":
    main()
