"""A study's trials as they finish: entered, judged all together, written, shown, published."""
