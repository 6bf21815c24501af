"""images/ is a folder of programs, not a package that is installed."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[3]))
