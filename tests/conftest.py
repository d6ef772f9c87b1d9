"""What every test shares."""

from hypothesis import settings

# The first call of a compiled function takes seconds, which says nothing about the example that made it.
settings.register_profile("streamsvm", deadline=None)
settings.load_profile("streamsvm")
