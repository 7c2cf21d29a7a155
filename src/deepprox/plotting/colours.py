"""Colours that the pictures share; the sequence is readable without telling red from green."""

INK, MUTED = "#1F3B73", "#6B7280"
SEQUENCE = ("#1F3B73", "#C8553D", "#2A7F62", "#E0A458", "#6D597A", "#3A86C8", "#8D6A4F", "#B5838D")
FAINT = "#C9CED6"
