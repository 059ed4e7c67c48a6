"""`make demo`: deploy the demo environment on the embedded AWS and train a real corpus in it."""
