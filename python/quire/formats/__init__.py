"""
The formats of queues: what the package asks about them.

An ``adapter`` answers, in the module named after its format: nothing else asks which format a queue
has. ``adapters`` finds the one of an open queue, ``detection`` determines the format of the files
in a directory, and ``columns`` are messages of any of them. The handles are in
:mod:`quire.handles`.
"""
