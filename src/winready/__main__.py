"""Entry point of the console scripts; it answers ``--version`` before anything else is imported."""

import sys


def main() -> None:
    """Run the command line."""
    if sys.argv[1:] == ["--version"]:
        from winready import __version__

        print(f"winready {__version__}")
        return
    from winready.cli.main import cli

    cli(prog_name="winready")


if __name__ == "__main__":
    main()
