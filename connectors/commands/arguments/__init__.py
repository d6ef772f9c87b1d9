"""What each command takes: a function for each command adds its arguments to a parser, under the command's word.
Its docstring is what `streamsvm COMMAND --help` prints: a paragraph that describes the command, and one with a line for
each argument.

Nothing here imports a room that does the work, or a package, so that help, a version and a misspelt word cost a tenth
of a second.  Names of what the engine offers stand here once more; tests compare them with the engine's own.
"""
