"""What a client prints, as the contract has it: both sides' tests hold their lines against this."""

import json
from pathlib import Path

from jsonschema import Draft202012Validator

CONTRACT = Draft202012Validator(
    json.loads((Path(__file__).parents[2] / "images/client/contract.schema.json").read_text())
)
