"""Consumer groups: where they stand, their checkpoints, and their positions set on the other
cluster."""
