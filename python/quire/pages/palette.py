"""
The colours of pages, light and dark.

Plots are drawn in the light colours. In a page each colour becomes a variable of the style sheet,
so that one drawing serves both themes.
"""

from __future__ import annotations

from typing import Final

INK: Final = "#1f2d3a"
FAINT: Final = "#5d6b78"
GRID: Final = "#dfe5ea"
SURFACE: Final = "#ffffff"
BLUE: Final = "#1f6f8b"
ORANGE: Final = "#c9562f"
GREEN: Final = "#3c8157"
VIOLET: Final = "#7457a6"
GOLD: Final = "#b07d12"
RED: Final = "#b3261e"
GREY: Final = "#a3afba"

SERIES: Final = (BLUE, ORANGE, GREEN, VIOLET, GOLD, RED)

# From low to high.
HEAT: Final = (
    "#eef3f5",
    "#d3e3e8",
    "#f6e0c4",
    "#f3c295",
    "#e99a66",
    "#d36f45",
    "#a84529",
    "#742416",
)
# The text on the lower and on the upper steps.
ON_LOW: Final = "#1f2d3b"
ON_HIGH: Final = "#fffdfb"
HIGH_FROM: Final = 5

_DARK: Final = {
    INK: "#e4eaf0",
    FAINT: "#9fadba",
    GRID: "#2d3843",
    SURFACE: "#12181e",
    BLUE: "#5bb6d3",
    ORANGE: "#f0875e",
    GREEN: "#74c294",
    VIOLET: "#b59ae0",
    GOLD: "#dfb04a",
    RED: "#ff8a80",
    GREY: "#5a6773",
    **dict(
        zip(
            HEAT,
            (
                "#1d2730",
                "#243944",
                "#4a3a28",
                "#6e4a2b",
                "#99592f",
                "#c9703f",
                "#ee9a6a",
                "#ffd0ac",
            ),
            strict=True,
        )
    ),
    ON_LOW: "#dfe6ed",
    ON_HIGH: "#1a1410",
}

_NAMES: Final = {
    INK: "ink",
    FAINT: "faint",
    GRID: "grid",
    SURFACE: "surface",
    BLUE: "blue",
    ORANGE: "orange",
    GREEN: "green",
    VIOLET: "violet",
    GOLD: "gold",
    RED: "red",
    GREY: "grey",
    **{colour: f"heat-{step}" for step, colour in enumerate(HEAT)},
    ON_LOW: "on-low",
    ON_HIGH: "on-high",
}


def variable(colour: str) -> str:
    """Return the variable of a colour, or the colour itself if it has none."""
    name = _NAMES.get(colour.lower())
    return colour if name is None else f"var(--{name})"


def declarations(*, dark: bool) -> str:
    """Return the CSS declarations of the variables."""
    values = ((name, _DARK[light] if dark else light) for light, name in _NAMES.items())
    return " ".join(f"--{name}: {value};" for name, value in values)
