"""
Self-contained HTML pages of text, tables and plots: no network, no scripts.

>>> from quire.pages import Page, Section
>>> page = Page("Trades", "What was traded.", sections=[Section("Today", ["Nothing."])])
>>> page.html().startswith("<!DOCTYPE html>")
True
"""

from quire.pages.blocks import Chart, Lead, Section, Table
from quire.pages.page import Page

__all__ = ["Chart", "Lead", "Page", "Section", "Table"]
