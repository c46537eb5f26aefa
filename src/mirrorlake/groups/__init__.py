"""Consumer groups: where they stand, their checkpoints, and their positions on the other side."""
