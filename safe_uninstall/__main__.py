"""``python -m safe_uninstall``."""

from safe_uninstall.cli.main import main

if __name__ == "__main__":
    main()
