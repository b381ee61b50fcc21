"""The style of plots, independent of the machine's matplotlib settings."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, Final

import matplotlib as mpl

from quire.pages.palette import FAINT, GRID, INK

_STYLE: Final[dict[Any, Any]] = {
    # Text stays text, and identifiers are the same each time.
    "svg.fonttype": "none",
    "svg.hashsalt": "quire",
    # A `$` in a name does not start a formula.
    "text.parse_math": False,
    "date.converter": "concise",
    "font.size": 13,
    "text.color": INK,
    "axes.facecolor": "none",
    "axes.labelcolor": FAINT,
    "axes.labelsize": 13,
    "axes.edgecolor": GRID,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.spines.left": False,
    "grid.color": GRID,
    "grid.linewidth": 1,
    "lines.linewidth": 2.2,
    "lines.solid_capstyle": "round",
    "legend.frameon": False,
    "legend.borderpad": 0,
    "legend.borderaxespad": 0,
    "legend.handlelength": 1.2,
    "legend.labelcolor": INK,
    "xtick.color": FAINT,
    "ytick.color": FAINT,
    "xtick.major.size": 0,
    "ytick.major.size": 0,
    "xtick.minor.size": 0,
    "xtick.major.pad": 6,
    "ytick.major.pad": 8,
}


@contextmanager
def style() -> Generator[None]:
    """Draw in the style of pages."""
    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(_STYLE)
        yield
