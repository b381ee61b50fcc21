"""
Quire measured beside Java's Chronicle Queue, and beside what a Python program would use instead.

Run as ``python -m bench``; how it measures is in ``bench/METHOD.md``.
"""
