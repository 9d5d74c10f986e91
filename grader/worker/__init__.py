"""RECORD: runs the learner's host code in the sandbox and captures its launches."""
