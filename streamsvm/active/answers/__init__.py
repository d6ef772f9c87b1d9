"""Questions and answers: what happened in a labelling run, in the order in which it happened.

Start in `events`.  `question_book` counts the open questions, `majority` decides
between several annotators, `register` keeps the answers, and `progress` the curve.
"""
