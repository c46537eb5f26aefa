"""Names: the selection of topics, and the policies that name their mirrors. Pure."""
