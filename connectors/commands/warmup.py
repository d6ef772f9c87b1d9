"""The command ``streamsvm warmup``: compile everything ahead of time."""

import argparse

import streamsvm


def run(_: argparse.Namespace) -> None:
    print(f"ready after {streamsvm.warmup():.1f} seconds")
