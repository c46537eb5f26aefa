"""The benchmark (`mirrorlake bench`): mirrorlake against MirrorMaker 2 and against hand-written
jobs."""
