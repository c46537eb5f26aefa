"""The public API behind `import mirrorlake`; the command line and the notebooks are built on it."""
