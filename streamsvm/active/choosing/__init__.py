"""Choosing: which example to ask about next, and when to stop.

Start in `selection`, then `mixed`, the default.  `pool` holds the candidates.  `decisions` and
`space` have what a selection knows of each candidate; `vectors` and `span` compute it.  `novelty` is for a stream whose
examples pass once, and `kernel_width` chooses gamma.  `stopping` is what a stopping rule is; `stopping_rules` and
`audited` have the rules.
"""
