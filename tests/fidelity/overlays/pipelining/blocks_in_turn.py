"""Right but different: programs take blocks of a row in turn, another kernel finishes."""
