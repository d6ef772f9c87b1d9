"""The command ``demo``: two real streams and a made one of raw records (`orders`), or digits to label (`digits`)."""
