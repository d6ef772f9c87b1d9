"""Choosing: which example to ask about next, and when to stop.

Start in `selection`.  `pool` holds the candidates, and `rows` reads them.  `passing` is for a stream whose examples
pass once.  `stopping` and `rules` say when the questions end.
"""
