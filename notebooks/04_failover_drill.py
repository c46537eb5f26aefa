# Databricks notebook source
# MAGIC %md
# MAGIC # 4. A failover, rehearsed
# MAGIC
# MAGIC Could every consumer group go on at the target now, and from where? This page asks both
# MAGIC clusters, translates every position, and shows what a failover would do. **Nothing is
# MAGIC changed while `dry_run` says yes.** It needs the network to the target (and to the source,
# MAGIC while that is there), and is recorded as a run of MLflow.
# MAGIC
# MAGIC | widget | means |
# MAGIC |---|---|
# MAGIC | `topology` | the topology file; empty is `mirrorlake.yml` in the schema's volume, or beside a local lake |
# MAGIC | `groups` | names with commas between; empty is all that the flow mirrors |
# MAGIC | `dry_run` | `yes`, or `no` to move the groups |
# MAGIC
# MAGIC On a laptop the demo's clusters are started for the rehearsal and stopped behind it; the
# MAGIC demo has no consumers of its own, so a group is made that has read half of the topic.

# COMMAND ----------

# MAGIC %md
# MAGIC ## Installing
# MAGIC
# MAGIC On Databricks: the wheel that the bundle deployed together with this page. In a Git folder
# MAGIC there is none; skip the next two cells there, on compute that has mirrorlake.

# COMMAND ----------

# MAGIC %pip install --quiet -r requirements.txt

# COMMAND ----------

# MAGIC %restart_python

# COMMAND ----------

import os
import sys

sys.path.append(os.path.abspath("../src"))  # where mirrorlake is installed, that one is used

from mirrorlake.notebook import drill, open_notebook

nb = open_notebook(globals(), flow="", topology="", groups="", dry_run="yes")

# COMMAND ----------

# MAGIC %md
# MAGIC ## What the lake knows
# MAGIC
# MAGIC The newest checkpoint of every group: `ready` are the partitions whose position is known
# MAGIC exactly on the target. `newest_checkpoint` is how old that knowledge is, and so how much
# MAGIC would be read again if the source were gone this minute. No rows: no group has committed a
# MAGIC position on a mirrored topic while the flow ran.

# COMMAND ----------

nb.display(nb.query("ready_groups", flow=nb.flow))

# COMMAND ----------

# MAGIC %md
# MAGIC ## The rehearsal
# MAGIC
# MAGIC One row per group and partition: `position` at the source, `to_position` at the target,
# MAGIC `before` what stands there now. `done`:
# MAGIC
# MAGIC - **would move** (or **moved**): from `to_position` the group reads on; `read_again_at_most`
# MAGIC   records come twice, usually 0.
# MAGIC - **there**: nothing to do.
# MAGIC - **kept**: the group at the target is ahead, or has members there; its position is never
# MAGIC   moved backwards unless forced.
# MAGIC - **failed**: `detail` says why. Run it again; what was done stays done.

# COMMAND ----------

rehearsal = drill.rehearse(nb)
nb.display(drill.moves(rehearsal))

# COMMAND ----------

# MAGIC %md
# MAGIC ## What it means
# MAGIC
# MAGIC "left" names what a failover would leave undone, "still has members" whom to stop first. With
# MAGIC `dry_run` no this cell fails where something is left, and with it a job that runs the page.

# COMMAND ----------

nb.display(*rehearsal.sentences)
drill.check(rehearsal)

# COMMAND ----------

# MAGIC %md
# MAGIC ## Next
# MAGIC
# MAGIC The real thing: stop the consumers at the source, `mirrorlake failover --flow 'east->west'
# MAGIC --all-groups`, start them at the target. The way back is `mirrorlake failback`.
# MAGIC `docs/failover.md` has both, planned and unplanned.
