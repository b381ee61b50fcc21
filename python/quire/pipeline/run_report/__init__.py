"""The report of a run: its model, its text and its page."""
