"""What must not run, and what must not be: rules asked before the first record, laws checked
against tables."""
