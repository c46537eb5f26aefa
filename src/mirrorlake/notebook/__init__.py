"""What the notebooks in `notebooks/` are made of: they call this and explain what is seen
(docs/notebooks.md)."""

from mirrorlake.extras import needs

with needs("dashboard"):  # its charts are the dashboard's
    from mirrorlake.notebook.host import Notebook, open_notebook

__all__ = ["Notebook", "open_notebook"]
