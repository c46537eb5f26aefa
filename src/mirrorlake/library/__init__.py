"""The public face: what `import mirrorlake` gives, and what the command line and the notebooks are
written on."""
