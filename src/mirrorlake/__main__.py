"""`python -m mirrorlake`, and the file to pass to `spark-submit`."""

from mirrorlake.cli.main import main

if __name__ == "__main__":
    main()
