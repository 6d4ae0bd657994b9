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
    from subdp.encoder.feature_store import FeatureStore

_GROUP = "subdp.aligners"


def aligner_key(name: str) -> str:
    """Identifies an aligner before it is built: a method's name, a plug-in with its version, or the hash of a file."""
    if name in METHODS:
        return name
    if (found := plugins(_GROUP)).get(name):
        return f"{name} of {package_of(found[name])}"
    if not Path(name).is_file():
        choices = ", ".join([*METHODS, *found])
        raise SubdpError(f"there is no aligner {name!r}", hint=f"choose {choices}, or name a file of links")
    return file_hash(name)


def find_aligner(name: str, store: FeatureStore, *, one_to_one: bool = False) -> Aligner:
    """Build the aligner of that name with the encoder of a feature store, whose vectors it may use."""
    if name in METHODS:
        return SimilarityAligner(store.encoder, name, one_to_one=one_to_one, store=store)
    if name in plugins(_GROUP):
        made = make(_GROUP, name, store.encoder, one_to_one=one_to_one)
        if not isinstance(made, Aligner):
            hint = "its entry point must name a class or function that returns a subdp.Aligner"
            raise SubdpError(f"the aligner plug-in {name!r} returned a {type(made).__name__}", hint=hint)
        return made
    return FileAligner(name, one_to_one=one_to_one)
