"""
Looking after queues: checking and repairing files, locks, file systems.

:func:`quire.verify` and :func:`quire.repair` are here, with the reports they return; the checks
themselves are in the kernel. :func:`quire.removable` and :func:`quire.file_state` say which files
are in use, and :func:`quire.explain` what the bytes of a message mean.
:func:`quire.copy_queue` copies a queue in use, :func:`quire.split_queue` and
:func:`quire.merge_queues` write one into several and the reverse.
"""
