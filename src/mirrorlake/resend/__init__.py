"""Sending again what the stage holds, outside of flows: replays by a predicate, restores of whole
topics."""
