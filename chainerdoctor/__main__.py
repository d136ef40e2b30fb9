"""``python -m chainerdoctor``."""

from chainerdoctor.cli import main

if __name__ == "__main__":
    main(prog_name="chainerdoctor")
