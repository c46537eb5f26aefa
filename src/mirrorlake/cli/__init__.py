"""The command line: parses, calls the library, and shows. Nothing is decided here."""
