"""Sends again what the stage holds, outside of flows: replays by predicate, restores of topics."""
