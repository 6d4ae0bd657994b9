"""The verbs that look after the installation: `cache` and `plugins`. No torch but to measure the cache."""

from __future__ import annotations

from subdp.cli.app import Flag, app, give


@app.command
def cache(*, clear: Flag = False, json: Flag = False) -> None:
    """Show what subdp keeps between runs, and how large it is.

    Parameters
    ----------
    clear
        Delete it: everything is made anew when it is needed.
    json
        Print sizes in bytes as JSON.
    """
    import shutil

    from subdp.encoder.feature_store import store_sizes
    from subdp.support.cache import cache_folder

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
    """List what other installed packages add: encoders, aligners, translators, tokenizers.

    Parameters
    ----------
    json
        Print it as JSON.
    """
    from subdp.support.plugins import GROUPS
    from subdp.support.plugins import plugins as offered

    found = {group.removeprefix("subdp."): {name: e.value for name, e in offered(group).items()} for group in GROUPS}
    if json:
        give(found)
        return
    for kind, entries in found.items():
        give(f"{kind}: {', '.join(f'{name} ({value})' for name, value in entries.items()) or 'none'}")
