"""Questions and answers: what happened in a labelling run, in the order in which it happened.

Start in `events`.  `questions` keeps those of a loop, `register` says what is known of an example, and `progress` keeps
the curve.  `question_book` counts the open questions, and `majority` decides between several annotators.
"""
