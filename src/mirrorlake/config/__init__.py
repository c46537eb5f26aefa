"""Configuration: the topology file, its settings and their defaults. Pure."""
