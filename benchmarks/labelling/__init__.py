"""The parts of active.py that compare ways of choosing questions: start in `policies`; `sets` has the data."""
