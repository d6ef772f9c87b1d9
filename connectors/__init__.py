"""The outside world of streamsvm: record logs, the wire format, the daemon and the command line."""
