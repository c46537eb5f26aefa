"""Imports MirrorMaker's configuration as a topology file: text in, document out.

Pure: it knows neither Kafka nor Spark nor the disk. `mirrorlake.mm2.importer.read.import_files` is
the entry point.
"""
