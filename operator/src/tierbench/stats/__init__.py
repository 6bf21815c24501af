"""Statistics in pure Python, without SciPy. This package imports nothing of tierbench."""
