"""Entry point of the console scripts; it answers what needs no command before anything else is imported."""

import sys


def main() -> None:
    """Run the command line."""
    try:
        from winready.cli import front

        if (text := front.answer(sys.argv[1:])) is not None:
            front.say(text)
            return
        from winready.cli.main import cli

        cli(prog_name="winready", standalone_mode=True)
    except ModuleNotFoundError as error:
        if error.name not in ("fcntl", "pwd", "grp", "termios", "resource"):
            raise
        print("error: this command needs Linux or macOS; on Windows run it in WSL or a container", file=sys.stderr)
        sys.exit(2)
    except SystemExit:
        # All is said and done. Ctrl-C while Python ends would make another exit code of it.
        if signal := sys.modules.get("signal"):
            signal.signal(signal.SIGINT, signal.SIG_IGN)
        raise
    except KeyboardInterrupt:
        # So early that nobody stands ready to clean up: there is nothing yet.
        sys.exit(130)


if __name__ == "__main__":
    main()
