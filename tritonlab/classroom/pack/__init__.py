"""Builds of a course for other places: autograders, workflows, images and students."""
