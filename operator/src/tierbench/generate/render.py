"""How generated YAML looks."""

from typing import Any, Final

import yaml

WIDTH: Final = 120
NOTICE: Final = "Generated from operator/src/tierbench/{source}: change that, then run `make generate`."


def to_yaml(value: Any, *, flat_leaves: bool = False) -> str:
    """YAML in the order of the value, without anchors; with `flat_leaves`, lists of scalars stand on one line."""
    style = None if flat_leaves else False
    return yaml.dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=WIDTH, default_flow_style=style)


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        return True
