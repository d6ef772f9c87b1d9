"""Finding events: an annotator searches the newest ones by words, values and likeness, and labels what they find.

finder.py reads the topic of events, on its own thread, from the first search on. index.py holds the events, in a
temporary database that ends with the process, and numbers.py their numbers. query.py reads what people type. A found
event is shown as the question that the trainer would ask about it, with the id that this question would have. So an
answer to it needs no way of its own: it can be undone and corrected, and the trainer takes it for a chosen one.
"""
