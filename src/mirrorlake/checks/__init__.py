"""What must not run, and what must not happen: rules checked before the first record, and laws
checked on the tables."""
