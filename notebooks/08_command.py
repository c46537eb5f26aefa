# Databricks notebook source
# MAGIC %md
# MAGIC # 8. A command, without a shell
# MAGIC
# MAGIC What the command line answers and does: `plan`, `status`, `resolve`, `groups`, `failover`,
# MAGIC `failback`, `verify`, `divergence`, `translate`, `sql`, `maintain`. What a command changes,
# MAGIC it changes here too. It needs compute with a network to the clusters, dedicated to you, and
# MAGIC `READ VOLUME` for the topology file. The bundle's job `mirrorlake command` does the same on
# MAGIC compute of its own.
# MAGIC
# MAGIC | widget | means |
# MAGIC |---|---|
# MAGIC | `topology` | the topology file; empty is `mirrorlake.yml` in the schema's volume, or beside a local lake |
# MAGIC | `command` | such as `plan` |
# MAGIC | `arguments` | its options as one text, as in a shell: `--flow east->west --group 'billing eu' --dry-run` |
# MAGIC
# MAGIC On a laptop: `python notebooks/08_command.py command=sql arguments="'SELECT * FROM
# MAGIC alerts'"`.

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

from mirrorlake.notebook import command, open_notebook

nb = open_notebook(globals(), topology="", command="status", arguments="")

# COMMAND ----------

# MAGIC %md
# MAGIC ## What the command says
# MAGIC
# MAGIC The text is what a terminal would show. With `--json` it is one document, for a program.

# COMMAND ----------

ended = command.run(nb)

# COMMAND ----------

# MAGIC %md
# MAGIC ## How it ended
# MAGIC
# MAGIC Exit code 0: done, and healthy. 1: the replication needs attention, and the output says why.
# MAGIC 2: it was not done, since an input is wrong, or a cluster or the lake cannot be used; the
# MAGIC sentence says what to change. With 1 or 2 this cell fails, and with it a job that runs the
# MAGIC page.

# COMMAND ----------

nb.display(command.checked(ended))

# COMMAND ----------

# MAGIC %md
# MAGIC ## Some to begin with
# MAGIC
# MAGIC | `command` | `arguments` | answers |
# MAGIC |---|---|---|
# MAGIC | `plan` | | what `run` would do to the targets; exit code 1 when a topic is left out |
# MAGIC | `resolve` | | what waits for a decision, and the choices |
# MAGIC | `resolve` | `--kind topic_recreated --topic orders --choice new-generation` | decides it |
# MAGIC | `verify` | `--flow east->west --sample 1%` | a hundredth of the records, compared by content |
# MAGIC | `failover` | `--flow east->west --all-groups --dry-run` | where each group would go on |
# MAGIC | `failback` | `--flow east->west --all-groups` | the groups are moved back to the source |
# MAGIC | `divergence` | `--flow east->west` | what a lost source took with it |
# MAGIC | `trace` | `--flow east->west --topic orders --partition 0 --offset 42` | one record's life |
# MAGIC
# MAGIC `run` belongs into the jobs `replicate` and `replicate_scheduled`: a notebook that is
# MAGIC detached would end it.

# COMMAND ----------

# MAGIC %md
# MAGIC ## Next
# MAGIC
# MAGIC - exit code 1: `command` is `resolve`, and each incident has its choices
# MAGIC - a command of your own on a schedule: the job `mirrorlake command` (`docs/databricks.md`), or
# MAGIC   a job of this page
