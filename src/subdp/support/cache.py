"""The cache: what can be recomputed but is kept between runs. Standard library and platformdirs only."""

from __future__ import annotations

import os
from pathlib import Path

from platformdirs import user_cache_dir


def cache_folder() -> Path:
    """The cache folder: `SUBDP_CACHE`, or else the platform's cache folder for the user."""
    return Path(os.environ.get("SUBDP_CACHE") or user_cache_dir("subdp"))
