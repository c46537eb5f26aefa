"""What the notebooks in `notebooks/` are made of: they call this and explain what is seen (docs/notebooks.md)."""

from mirrorlake.notebook.host import Notebook, open_notebook

__all__ = ["Notebook", "open_notebook"]
