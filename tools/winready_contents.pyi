"""What tools/onefile.py writes beside onefile_start.py, into the file that both travel in."""

VERSION: str
PLATFORM: str
MACHINES: tuple[str, ...]
SUFFIXES: dict[str, str]
WHEELS: dict[str, list[tuple[str, str]]]
