"""The schema of what a client prints. The tests of client and operator validate their lines with it."""

import json
from pathlib import Path

from jsonschema import Draft202012Validator

CONTRACT = Draft202012Validator(
    json.loads((Path(__file__).parents[2] / "images/client/contract.schema.json").read_text())
)
