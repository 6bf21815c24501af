"""What the results say together: who is ahead where. Pure, and the same for every kind of benchmark."""
