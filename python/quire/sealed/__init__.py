"""
Seals: hashes of messages, trees over them, and signed checkpoints.

:func:`quire.maintenance.seal`, :func:`quire.maintenance.prove` and :func:`quire.verify` are what
programs call; the bytes are in ``docs/format.md``, what is protected against whom in
``docs/integrity.md``.
"""
