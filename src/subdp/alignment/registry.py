"""Aligners by name: a built-in method, a plug-in, or a file of links. No torch until one is built."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from subdp.alignment.aligner import Aligner
from subdp.alignment.file_links import FileAligner
from subdp.alignment.similarity import METHODS, SimilarityAligner
from subdp.support.errors import SubdpError
from subdp.support.files import file_hash
from subdp.support.plugins import make, package_of, plugins

if TYPE_CHECKING:
    from subdp.encoder.encoder import Encoder
    from subdp.encoder.feature_store import FeatureStore

_GROUP = "subdp.aligners"


def aligner_names() -> list[str]:
    """The names of our methods and of the plug-ins that are installed."""
    return [*METHODS, *plugins(_GROUP)]


def aligner_key(name: str) -> str:
    """Identifies an aligner before it is built: a method's name, a plug-in with its version, or the hash of a file."""
    if name in METHODS:
        return name
    if (found := plugins(_GROUP)).get(name):
        return f"{name} of {package_of(found[name])}"
    return file_hash(_file_of_links(name))


def find_aligner(
    name: str,
    encoder: Encoder,
    *,
    store: FeatureStore | None = None,
    layer: int | None = None,
    one_to_one: bool = False,
) -> Aligner:
    """Build the aligner of that name with an encoder, whose stored vectors it may use; `layer` is for our methods."""
    if name in METHODS:
        return SimilarityAligner(encoder, name, layer, one_to_one=one_to_one, store=store)
    if layer is not None:
        raise SubdpError(f"the aligner {name!r} takes no layer", hint=f"only {', '.join(METHODS)} do")
    if name in plugins(_GROUP):
        made = make(_GROUP, name, encoder, one_to_one=one_to_one)
        if not isinstance(made, Aligner):
            hint = "its entry point must name a class or function that returns a subdp.Aligner"
            raise SubdpError(f"the aligner plug-in {name!r} returned a {type(made).__name__}", hint=hint)
        return made
    return FileAligner(_file_of_links(name), one_to_one=one_to_one)


def _file_of_links(name: str) -> str:
    if Path(name).is_file():
        return name
    hint = f"choose {', '.join(aligner_names())}, or name a file of links"
    raise SubdpError(f"there is no aligner {name!r}", hint=hint)
