"""The first half of a record's way: from a source cluster into `records`."""
