"""The tables: made, opened, read, appended to, translated by, and kept small."""
