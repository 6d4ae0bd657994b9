"""Where everything that can be made again is kept between runs. Standard library and platformdirs only."""

from __future__ import annotations

import os
from pathlib import Path

from platformdirs import user_cache_dir


def cache_folder() -> Path:
    """Where everything that can be made again is kept: `SUBDP_CACHE`, or the platform's cache folder of the user."""
    return Path(os.environ.get("SUBDP_CACHE") or user_cache_dir("subdp"))
