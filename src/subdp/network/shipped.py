"""The parsers that come with the package. No torch: the command line names them in its help."""

from __future__ import annotations

from pathlib import Path

SHIPPED = Path(__file__).parent / "models" / "en"
"""The English parser that comes with the package."""
