"""The parts of crossval.py: `methods` are compared by `measuring`; `report` prints the tables."""
