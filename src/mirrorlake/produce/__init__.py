"""Produce: from the stage to the target topics of one flow, exactly once, and the rows of its map.

`plan` decides in the driver which offsets go; `task` runs in executors and writes them in Kafka transactions; `flow`
joins the two and appends what came back to the lake.
"""
