"""Applications: published analyses, run end to end."""
