"""What must not run or happen: rules checked before the first record, and laws on the tables."""
