"""Reading MirrorMaker's own configuration into a topology file: text in, document out (issue 4, item 8).

Pure: it knows neither Kafka nor Spark nor the disk. `mirrorlake.mm2.importer.read.import_files` is the way in.
"""
