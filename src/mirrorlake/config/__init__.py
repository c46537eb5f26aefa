"""What is asked for: the topology file, its settings and their defaults. Pure."""
