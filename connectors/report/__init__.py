"""Results of a run for people: tables in the terminal, pictures, and the report's page.

This room may import the engine, trainer/state, settings, records, logs and runtime; it imports neither the scorer nor
the labelling. Start in page.py, which puts the panels of panels.py together; drawing.py and charts.py draw with
matplotlib, and drift.py finds changes of the error.
"""
