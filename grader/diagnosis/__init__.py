"""From findings to words: where values are wrong, which mistake explains it, which TODO."""
