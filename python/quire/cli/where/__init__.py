"""The option ``--where``: its language, and the conditions that it makes."""
