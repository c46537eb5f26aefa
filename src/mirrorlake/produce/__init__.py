"""The second half of a record's way: from the stage to a flow's target topics, and into the map.

`flow` drives it, batch after batch; `task` runs in executors; `map_writer` writes the map's rows.
"""
