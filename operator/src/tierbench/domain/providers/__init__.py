"""Who brings servers up: what each has to be looked at, what comes next, what takes its servers down."""
