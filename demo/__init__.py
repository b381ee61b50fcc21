"""
The main job, end to end: the New York flights of 2013 as a journal.

``flights`` reads the data set, ``events`` puts it on the time line, ``record`` writes it into a
queue while ``follow`` tails it from a second process, ``analyse`` computes the delays from it on
Spark, ``figures`` without either. ``life`` has a consumer group work through it, and retention cut
a copy. ``checks`` holds the results together, ``page`` shows them. ``python -m demo``
runs all of it.
"""
