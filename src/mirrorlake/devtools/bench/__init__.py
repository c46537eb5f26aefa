"""The benchmark (`mirrorlake bench`): mirrorlake, MirrorMaker 2, and hand-written jobs."""
