"""One record's life, from written to read, by what the lake knows of it."""
