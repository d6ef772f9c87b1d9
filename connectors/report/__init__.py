"""Results of a run for people: tables in the terminal, pictures, the report's page, and models for LIBSVM.

This room may import the engine, trainer/state, settings, records, logs and runtime; it imports neither the scorer nor
the labelling. Start in page.py, which puts the panels of panels.py together; drawing.py and charts.py draw with
matplotlib, drift.py finds changes of the error, and export.py writes LIBSVM files.
"""
