"""Aligners by name: one of the methods, a plug-in, or a file of links. No torch until one is made."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from subdp.alignment.aligner import Aligner
from subdp.alignment.file_links import FileAligner
from subdp.alignment.similarity import METHODS, SimilarityAligner
from subdp.support.errors import SubdpError
from subdp.support.files import file_hash
from subdp.support.plugins import load, plugins

if TYPE_CHECKING:
    from subdp.encoder.feature_store import FeatureStore

_GROUP = "subdp.aligners"


def aligner_key(name: str) -> str:
    """What tells an aligner's links from those of others before it is made: its name, or the hash of a file."""
    if name in METHODS or name in plugins(_GROUP):
        return name
    if not Path(name).is_file():
        choices = ", ".join([*METHODS, *plugins(_GROUP)])
        raise SubdpError(f"there is no aligner {name!r}", hint=f"choose {choices}, or name a file of links")
    return file_hash(name)


def find_aligner(name: str, store: FeatureStore, *, one_to_one: bool = False) -> Aligner:
    """The aligner of that name, with the encoder of a store, whose vectors it may use."""
    if name in METHODS:
        return SimilarityAligner(store.encoder, name, one_to_one=one_to_one, store=store)
    if name in plugins(_GROUP):
        made = load(_GROUP, name)(store.encoder, one_to_one=one_to_one)
        if not isinstance(made, Aligner):
            hint = "its entry point must name a class or function that gives a subdp.Aligner"
            raise SubdpError(f"the aligner {name!r} is a {type(made).__name__}", hint=hint)
        return made
    return FileAligner(name, one_to_one=one_to_one)
