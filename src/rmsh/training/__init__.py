"""Training: the loop, the losses, the triplets and the checkpoints. Knows no method."""
