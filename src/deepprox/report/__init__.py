"""Tables of a fit, for the terminal and the notebook."""
