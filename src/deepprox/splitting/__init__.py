"""The split phase: ADMM on the augmented Lagrangian, one file for every step."""
