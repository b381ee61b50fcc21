"""
A page for browsers: the queues of a server, their messages, and who reads them.

`quire serve --web ADDRESS` runs it. It needs no script, and loads nothing from elsewhere.
"""
