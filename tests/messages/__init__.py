"""Every message of every verb, brought about for real and kept in one text per verb.

`python -m tests.messages` compares, `--write` keeps what is said now, `--verb grade` does one.
A situation is a line in the room of its verb; ``situations.py`` names the rooms.
"""
