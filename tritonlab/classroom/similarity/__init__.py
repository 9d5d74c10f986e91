"""Evidence that students did not work alone: rare code, comments and failures in common."""
