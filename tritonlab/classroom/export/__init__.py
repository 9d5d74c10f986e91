"""Exports of points: files of Canvas and Moodle filled in, files for others written."""
