"""One record's life, from written to read, reconstructed from the lake."""
