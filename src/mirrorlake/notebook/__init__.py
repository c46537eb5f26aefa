"""The code behind `notebooks/`, which call it and explain the results (docs/notebooks.md)."""

from mirrorlake.extras import needs

with needs("dashboard"):  # the charting libraries are those of the dashboard
    from mirrorlake.notebook.host import Notebook, open_notebook

__all__ = ["Notebook", "open_notebook"]
