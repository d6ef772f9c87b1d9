"""The labelling service in a terminal: questions as text, answers as keys.

session.py asks and hears the answers, and console.py talks with the annotator. keys.py reads keys from a terminal or
lines from a pipe, picture.py writes a question as text. This room imports what the room above it, labelling, may
import.
"""
