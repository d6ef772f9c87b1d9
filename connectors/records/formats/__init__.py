"""The formats of events: JSON, float32 vectors, Avro, and those of a schema registry.

Each turns a record's bytes into fields (see `base.Format`); `codec` decides whether the fields make an event.  Start
with `base`, then `json`.  ``test_formats`` tests them together.
"""
