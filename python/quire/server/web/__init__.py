"""
A web page that shows the queues of a server, their messages and their readers.

`quire serve --web ADDRESS` runs it. It works without JavaScript and
loads nothing from other sites.
"""
