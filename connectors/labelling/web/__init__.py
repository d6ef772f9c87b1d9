"""The labelling page: a small HTTP server, and the files that the annotator's browser loads from it.

page.py has the page's address and its token, server.py the requests. static/ has the page's HTML, style and scripts,
one script for each part of the page; main.js starts it. This room imports what the room above it, labelling, may
import.
"""
