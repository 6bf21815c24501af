"""How long tests wait: PATIENCE in the environment says how many times as long as on a common machine."""

import os

PATIENCE = float(os.environ.get("PATIENCE", "1"))
