"""The outside world of streamsvm, in rooms: record logs, records, settings, the processes, and the command line.

A room imports from its own folder and from lower rooms: runtime < logs < records < settings < trainer/state < trainer <
scorer, labelling, report < merger < commands. Start in commands/cli.py, or in trainer/trainer.py for the main loop.
It is installed as streamsvm.connectors: its files import each other with dots, and the engine by its name, streamsvm.
"""
