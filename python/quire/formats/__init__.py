"""
The formats of queues: what they have in common, and what each of them does its own way.

``base`` has what queues, appenders and tailers of every format have; ``journal`` and the modules
named after a format have the handles. What the package asks about a format, its ``adapter``
answers: nothing else asks which format a queue has. ``adapters`` finds the one of an open queue,
``detection`` determines the format of the files in a directory.
"""
