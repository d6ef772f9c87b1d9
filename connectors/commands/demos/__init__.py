"""The command ``demo``: two real streams, or digits to label (`digits`)."""
