"""The benchmark (`mirrorlake bench`): mirrorlake against MirrorMaker 2 and against what people
write by hand."""
