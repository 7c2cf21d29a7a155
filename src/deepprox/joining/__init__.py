"""The join phase: the constraints hold exactly, and W goes to a certified stationary point."""
