"""What a new user does on a whole stock Debian machine, which boots in qemu: python3 -m tests.debian --help."""
