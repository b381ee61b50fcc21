import xml.etree.ElementTree as ET
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from quire.pages import Chart, Lead, Page, Section, Table, charts, palette
from quire.pages.blocks import Cell
from quire.pages.render import shown

VOID = {"meta", "br", "wbr", "hr", "img", "input", "link"}
EVIL = "</style></title><script>alert(1)</script>\"'&lt;&<!-- ]]>"


class Parsed(HTMLParser):
    """What a browser makes of a page: elements with attributes, texts, and how they nest."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] != "style":
            self.texts.append(data)

    def values(self, name: str) -> list[str]:
        found = (attributes.get(name) for _, attributes in self.elements)
        return [value for value in found if value is not None]


def chart(says: str = "It rises.") -> Chart:
    labels = charts.Labels("hour", "minutes", [(0, "00"), (1, EVIL), (2, "02")])
    return Chart(
        charts.lines([0, 1, 2], {"mean": [1, 2, 4], EVIL: [2, 3, 9]}, labels), "Delay", says
    )


def test_a_dollar_is_no_formula() -> None:
    name = r"under $5 and \foo$"
    labels = charts.Labels(name, name, [(0, name), (1, "b")])
    drawn = charts.lines([0, 1], {name: [1, 2]}, labels)
    bars = charts.bars([name, "b"], {name: [1.0, 2.0]}, charts.Labels(name))
    texts = Parsed(page(Chart(drawn, "A", "B"), Chart(bars, "A", "B")).html()).texts

    assert "".join(texts).count(name) >= 4


@pytest.mark.filterwarnings("ignore:Glyph")  # no font has them
def test_control_characters_do_not_break_plots() -> None:
    name = "a\x1b[31m\x00\x9b\ufffe\u202eb"
    labels = charts.Labels(name, name, [(0, name), (1, "b")])
    plots = [
        charts.lines([0, 1], {name: [1, 2], "other": [2, 3]}, labels),
        charts.bars([name, "b"], {name: [1.0, 2.0], "other": [1.0, 2.0]}, charts.Labels(name)),
        charts.columns([0, 1], {name: [1, 2]}, labels),
    ]
    made = page(*[Chart(plot, name, name) for plot in plots]).html()
    assert "\x1b" not in made
    assert "\x00" not in made
    assert "\N{REPLACEMENT CHARACTER}[31m" in made


def page(*blocks: str | Chart | Table) -> Page:
    return Page("Title", "Summary", [Lead("7", "rows")], [Section("One", blocks)], "footer")


@given(st.text())
def test_any_text_comes_out_as_text(text: str) -> None:
    text += EVIL
    made = Page(text, text, [Lead(text, text)], [Section(text, [text])], text).html()

    seen = Parsed(made)
    assert "script" not in [tag for tag, _ in seen.elements]
    whole = "".join(seen.texts)
    assert whole.count(EVIL) == 8
    made.encode("utf-8")


def test_what_html_cannot_hold_is_shown_by_its_code() -> None:
    assert r"a\x00b\x1bc\ud800" in Page("t", "a\x00b\x1bc\ud800").html()


def test_texts_in_tables_and_plots_are_text_too() -> None:
    table = Table(EVIL, ["name", EVIL], [[EVIL, 1], ["b", None]])

    seen = Parsed(page(table, chart(EVIL)).html())

    assert "script" not in [tag for tag, _ in seen.elements]
    assert "".join(seen.texts).count(EVIL) >= 7
    assert EVIL in seen.values("aria-label")


def test_a_page_needs_nothing_but_itself() -> None:
    html = page(chart(), Table("t", ["a"], [[1]])).html()

    seen = Parsed(html)
    assert {"script", "link", "img", "iframe", "object"}.isdisjoint(tag for tag, _ in seen.elements)
    assert not seen.values("src")
    links = seen.values("href") + seen.values("xlink:href")
    assert all(link.startswith("#") for link in links)
    style = html[html.index("<style>") : html.index("</style>")]
    assert "url(" not in style
    assert "@import" not in style


def test_the_same_page_is_the_same_bytes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    first = page(chart(), chart()).html()
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1")
    page(chart(), chart()).write(tmp_path / "page.html")

    assert (tmp_path / "page.html").read_bytes() == first.encode()


def test_a_plot_does_not_depend_on_the_settings_of_the_machine() -> None:
    import matplotlib as mpl

    expected = page(chart()).html()
    with mpl.rc_context({"font.size": 30, "axes.grid": True, "svg.fonttype": "path"}):
        assert page(chart()).html() == expected
        assert mpl.rcParams["font.size"] == 30


def test_identifiers_are_unique_and_references_lead_somewhere() -> None:
    seen = Parsed(page(chart(), chart(), Chart(heat(), "Heat", "Hot.")).html())

    names = seen.values("id")
    assert len(names) == len(set(names))
    used = {link[1:] for link in seen.values("xlink:href") + seen.values("href")}
    clips = seen.values("clip-path") + seen.values("style")
    used |= {part.split(")")[0] for value in clips for part in value.split("url(#")[1:]}
    assert used <= set(names)
    assert used


def test_pictures_are_described() -> None:
    seen = Parsed(page(chart("It rises.")).html())

    ((svg, attributes),) = [(tag, it) for tag, it in seen.elements if tag == "svg"]
    described = {str(attributes[name]) for name in ("aria-labelledby", "aria-describedby")}
    assert (svg, attributes["role"]) == ("svg", "img")
    assert described <= set(seen.values("id"))
    assert seen.texts.count("It rises.") == 2
    assert ("html", {"lang": "en"}) in seen.elements


def test_colours_of_a_plot_are_those_of_the_style_sheet() -> None:
    html = page(chart(), Chart(heat(), "Heat", "Hot.")).html()

    drawn = html[html.index("<svg") :]
    assert "var(--blue)" in drawn
    assert "var(--heat-7)" in drawn
    assert palette.BLUE not in drawn
    names = {part.split(")")[0] for part in html.split("var(--")[1:]}
    night = palette.declarations(dark=True)
    assert all(f"--{name}:" in night for name in names)


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [
        (None, 1, "\u2013"),
        (1234567, 1, "1,234,567"),
        (-1234.56, 1, "\u22121,234.6"),
        (-0.01, 1, "0.0"),
        ("-a", 1, "-a"),
        (0.5, 3, "0.500"),
    ],
)
def test_cells_are_shown(value: Cell, digits: int, text: str) -> None:
    assert shown(value, digits) == text


def test_numbers_stand_to_the_right_and_rows_have_names() -> None:
    table = Table("T", ["name", "n"], [["a", 1], ["all", None]], emphasis=1)

    html = page(table).html()

    assert '<td class="number">1</td>' in html
    assert '<th scope="row">a</th>' in html
    assert '<tr class="sum"><th scope="row">all</th><td class="number">' in html
    assert '<th scope="col" class="number">n</th>' in html


def test_the_colours_of_cells_change_at_the_steps() -> None:
    drawn = page(Chart(heat(), "Heat", "Hot.")).html()

    root = ET.fromstring(  # noqa: S314 - made here
        drawn[drawn.index("<svg") : drawn.index("</svg>") + 6]
    )
    fills = [part.get("style", "") for part in root.iter()]
    for step in (0, 1, 7):
        assert sum(f"fill: var(--heat-{step})" in fill for fill in fills) >= 1
    texts = {part.text: part.get("style", "") for part in root.iter("text")}
    assert "nan" not in texts
    colours = {"\u22123": "on-low", "2": "on-low", "22": "on-high", "60": "on-high"}
    assert all(f"var(--{colour})" in texts[text] for text, colour in colours.items())


def test_other_kinds_of_plots_draw_what_they_are_given() -> None:
    level = charts.bars(
        ["a", "b"], {"x": [1, 2], "y": [3, 4]}, charts.Labels("n"), written=lambda it: f"{it:.0f}!"
    )
    upright = charts.columns([1, 2], {"x": [1, 2]}, charts.Labels("day", "n"))
    spans = charts.spans(["a"], {"mean": [3.0], "95th": [60.0]}, charts.Labels("minutes"))

    texts = Parsed(page(*(Chart(it, "t", "s") for it in (level, upright, spans))).html()).texts

    assert {"1!", "4!", "x", "y", "3", "60", "mean", "minutes"} <= set(texts)
    drawn = [bar for bar in level.axes[0].patches if isinstance(bar, Rectangle)]
    assert [(bar.get_x(), bar.get_width()) for bar in drawn] == [(0, 1), (0, 2), (1, 3), (2, 4)]


def heat() -> Figure:
    rows = {"a": [-3.0, 2.0, float("nan")], "b": [-0.2, 60.0, 22.0]}
    steps = [0, 5, 10, 15, 20, 30, 40]
    return charts.heat(rows, ["x", "y", "z"], charts.Labels("letter", "minutes"), steps)
