"""`python -m mirrorlake`, and the file that `spark-submit` is given."""

from mirrorlake.cli.main import main

if __name__ == "__main__":
    main()
