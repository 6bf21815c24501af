"""How apt and pip reach their archives on this machine (proxy, mirror, certificates), for the RUN steps of images."""

import configparser
import os
import re
from pathlib import Path

from images.shell import output

_APT = re.compile(r"Acquire::(http|https|Check-|Retries|Force)")
_PIP = ("index-url", "extra-index-url", "trusted-host", "proxy", "cert", "timeout", "default-timeout", "retries")


def apt_configuration() -> str:
    """The lines of apt's configuration that say how to reach archives."""
    lines = output("apt-config", "dump").splitlines()
    return "".join(f"{line}\n" for line in lines if _APT.match(line) and '""' not in line)


def pip_options() -> dict[str, str]:
    """The options of pip's files and environment that say how to reach an index."""
    home = Path.home()
    files = [Path("/etc/pip.conf"), home / ".pip/pip.conf", home / ".config/pip/pip.conf"]
    if "PIP_CONFIG_FILE" in os.environ:
        files.append(Path(os.environ["PIP_CONFIG_FILE"]))
    parser = configparser.RawConfigParser()
    parser.read(files)
    options = dict(parser["global"]) if parser.has_section("global") else {}
    options |= {name: os.environ[variable] for name in _PIP if (variable := _variable(name)) in os.environ}
    return {name: value for name, value in options.items() if name in _PIP}


def volumes(folder: Path) -> dict[Path, str]:
    """Files for a RUN step, written to the folder, and where they belong in the image."""
    apt, pip, options = folder / "apt.conf", folder / "pip.conf", pip_options()
    files = {apt: "/etc/apt/apt.conf.d/99build", pip: "/etc/pip.conf"}
    if "cert" in options:
        files[Path(options["cert"])] = options["cert"] = "/run/certificates.crt"
    apt.write_text(apt_configuration())
    pip.write_text("[global]\n" + "".join(f"{key} = {value}\n" for key, value in options.items()))
    return files


def _variable(option: str) -> str:
    return f"PIP_{option.upper().replace('-', '_')}"
