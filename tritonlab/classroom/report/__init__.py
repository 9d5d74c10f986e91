"""Pages about a class for its instructor, and feedback for its students."""
