"""`python -m subdp`, the same as the command `subdp`; torchrun starts it with `-m subdp`."""

from subdp.cli.main import main

if __name__ == "__main__":
    main()
