"""The report of a pipeline run: its model, and its forms as text and as a page."""
