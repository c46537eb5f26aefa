"""Imports MirrorMaker's configuration as a topology file: text in, document out.

Pure: it knows no Kafka, Spark or disk. The entry is `mirrorlake.mm2.importer.read.import_files`.
"""
