# Databricks notebook source
# MAGIC %md
# MAGIC # 6. How many cores for this load?
# MAGIC
# MAGIC Every `run` and `bench` is a run in MLflow. This page compares them and says what a load
# MAGIC needs.
# MAGIC
# MAGIC | widget | means |
# MAGIC |---|---|
# MAGIC | `records_per_second` | the load that is asked about |
# MAGIC | `record_bytes`, `partitions` | key and value of a record; partitions of all topics |
# MAGIC | `group_positions` | positions of consumer groups in these |
# MAGIC | `utilisation` | the share of the cores that is to be busy; the rest takes peaks and catching up |
# MAGIC | `tracking_uri`, `experiment` | where the runs are; empty is the lake's own store, or the workspace's |

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

from mirrorlake.notebook import capacity, open_notebook

nb = open_notebook(
    globals(),
    records_per_second="10000",
    record_bytes="1024",
    partitions="100",
    group_positions="0",
    utilisation="0.7",
    tracking_uri="",
    experiment="",
)

# COMMAND ----------

# MAGIC %md
# MAGIC ## The runs
# MAGIC
# MAGIC `cpu_seconds_per_million` is the CPU of driver, JVM and Python workers for a million
# MAGIC records. A short run looks expensive: starting Spark costs some 20 CPU seconds, however few
# MAGIC records follow. A run that was killed has no end: MLflow shows it as RUNNING.

# COMMAND ----------

found = capacity.measured(nb)
nb.display(capacity.runs(found))

# COMMAND ----------

# MAGIC %md
# MAGIC ## The answer

# COMMAND ----------

nb.display(capacity.sentence(nb, found))

# COMMAND ----------

# MAGIC %md
# MAGIC ## For other loads
# MAGIC
# MAGIC `runs of this lake`: a line through every half minute of its runs (busy cores by records per
# MAGIC second): `idle_cores` is what is busy with no records. That is your records on your machine,
# MAGIC and the answer to prefer once it has seen some load. `benchmark`: from `mirrorlake bench` at
# MAGIC full speed, by record size. Brokers are in neither.

# COMMAND ----------

nb.display(capacity.answers(nb, found))

# COMMAND ----------

# MAGIC %md
# MAGIC ## Before there are runs
# MAGIC
# MAGIC The same load by the figures of `docs/capacity.md`, which were measured on one machine of two
# MAGIC cores, by where the lake lies; memory too. `mirrorlake plan` says it of your own flows.

# COMMAND ----------

nb.display(capacity.by_figures(nb))

# COMMAND ----------

# MAGIC %md
# MAGIC ## Drawn
# MAGIC
# MAGIC A dot is half a minute of a run. Dots far above the others at the same load: Spark was
# MAGIC starting, or something else used the machine. Do not trust the line far to the right of the
# MAGIC dots: measure there.

# COMMAND ----------

chart = capacity.chart(nb, found)
nb.display("no run has figures over time yet" if chart is None else chart)

# COMMAND ----------

# MAGIC %md
# MAGIC ## Next
# MAGIC
# MAGIC - more cores, or fewer: set them where the run starts (`docs/cost.md` has what that costs)
# MAGIC - too few runs to say: let one go for an hour, or run `mirrorlake bench` on such a machine
