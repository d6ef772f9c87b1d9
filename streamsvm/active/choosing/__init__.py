"""Choosing: which example to ask about next, and when to stop.

Start in `selection`.  `pool` holds the candidates, and `rows` reads them.  `novelty` is for a stream whose examples
pass once.  `stopping` and `stopping_rules` say when the questions end.
"""
