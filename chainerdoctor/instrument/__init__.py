"""What looks at a training script while it runs, and the runner that runs it. Standard library only."""
