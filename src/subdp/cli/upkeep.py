"""The verbs that look after the installation: `cache` and `plugins`. No torch but to measure the cache."""

from __future__ import annotations

import shutil

from subdp.cli.app import Flag, app, give
from subdp.support.cache import cache_folder
from subdp.support.plugins import GROUPS
from subdp.support.plugins import plugins as offered


@app.command
def cache(*, clear: Flag = False, json: Flag = False) -> None:
    """Show what subdp keeps in its cache, and how large it is.

    Parameters
    ----------
    clear
        Empty the cache; whatever is needed is computed again.
    json
        Print sizes in bytes as JSON.
    """
    from subdp.encoder.feature_store import store_sizes

    kept = [
        (str(store.folder), store.bytes, f"features of {store.encoder}, layers {store.layers}")
        for store in store_sizes()
    ]
    for name, what in (("silver", "projected pairs"), ("encoders", "the bundled encoder, converted")):
        folder = cache_folder() / name
        if folder.exists():
            size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
            kept.append((str(folder), size, what))
    total = sum(size for _, size, _ in kept)
    if clear:
        for name, _, _ in kept:
            shutil.rmtree(name)
    if json:
        entries = [{"folder": name, "bytes": size, "what": what} for name, size, what in kept]
        give({"cleared": clear, "bytes": total, "entries": entries})
        return
    for name, size, what in kept:
        give(f"{size / 1e6:>8,.0f} MB  {what}  {name}")
    give(f"{total / 1e6:>8,.0f} MB  {'freed' if clear else 'in all'}")


@app.command
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
