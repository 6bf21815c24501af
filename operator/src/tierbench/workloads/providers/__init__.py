"""Who brings brokers up: what each makes for one, and how clients reach it."""
