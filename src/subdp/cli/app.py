"""The command line: `subdp VERB …`. Each verb is the Python verb of the same name; results go to standard output.

Nothing heavy is imported until a verb that needs it runs; `subdp.cli.main` has the list of verbs.
Exit 1: something is wrong with the data; 2: with the call.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Annotated, Any, NoReturn, TypeAlias

from cyclopts import App, CycloptsError, Group, Parameter

from subdp import __version__
from subdp.support.errors import SubdpError


def _no_option(_: Any, value: Any) -> None:
    """Of what begins with a hyphen, only `-` (standard input or output) names a file."""
    if isinstance(value, str) and value.startswith("-") and value != "-":
        raise ValueError(f"there is no option {value}")


def _on_disk(hint: Any, value: Any) -> None:
    _no_option(hint, value)
    if isinstance(value, str) and "://" in value:
        raise ValueError(f"{value} is not on a disk: name a file or folder that all machines see, mounted if need be")


def _is_seed(_: Any, value: Any) -> None:
    if isinstance(value, int) and not 0 <= value < 2**63:
        raise ValueError(f"{value} cannot be a random seed: give a whole number of at least 0")


_EVERY = Group("With every command", sort_key=2)

Flag: TypeAlias = Annotated[bool, Parameter(negative="", show_default=False)]
Input: TypeAlias = Annotated[str, Parameter(allow_leading_hyphen=True, validator=_no_option)]
Output: TypeAlias = Annotated[str, Parameter(name=["--output", "-o"], allow_leading_hyphen=True, validator=_on_disk)]
Address: TypeAlias = Annotated[str, Parameter(name=["--output", "-o"], allow_leading_hyphen=True, validator=_no_option)]
Seed: TypeAlias = Annotated[int, Parameter(validator=_is_seed)]
Files: TypeAlias = Annotated[list[str], Parameter(consume_multiple=True, negative="")]

app = App(
    name="subdp",
    help="A dependency parser for a language without a treebank, from translated text.",
    version=f"subdp {__version__}",
    version_flags=["--version"],
    suppress_keyboard_interrupt=False,  # `run` below handles it.
)


@app.meta.default
def run(
    *tokens: Annotated[str, Parameter(show=False, allow_leading_hyphen=True)],
    quiet: Annotated[Flag, Parameter(group=_EVERY)] = False,
    debug: Annotated[Flag, Parameter(group=_EVERY)] = False,
) -> Any:
    """Run one command; an error becomes one line and an exit code.

    Parameters
    ----------
    quiet
        Show no progress bars.
    debug
        Show the full traceback of an error.
    """
    if quiet:
        os.environ["SUBDP_QUIET"] = "1"
    try:
        return app(tokens, exit_on_error=False, print_error=False)
    except CycloptsError as error:
        misused(error)
    except SubdpError as error:
        if debug:
            raise
        say(f"subdp: {error}")
        sys.exit(1)
    except BrokenPipeError:
        # The reader of the pipe has gone, as with `| head`: not an error, but nothing more can be written to it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except OSError as error:
        if debug:
            raise
        say(f"subdp: {error.filename or 'a file'}: {error.strerror or error}")
        sys.exit(1)
    except KeyboardInterrupt:
        say("subdp: interrupted")
        sys.exit(130)


def misused(error: CycloptsError) -> NoReturn:
    """What is wrong with a call, on one line."""
    say(f"subdp: {' '.join(str(error).split())}")
    sys.exit(2)


def say(text: str) -> None:
    """A message for the user, on standard error."""
    print(text, file=sys.stderr)


def give(result: dict[str, Any] | str) -> None:
    """A result, on standard output; a dictionary as JSON."""
    print(result if isinstance(result, str) else json.dumps(result, ensure_ascii=False, indent=2))
