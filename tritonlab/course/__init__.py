"""The course on disk: tracks, modules, lessons, and finding a module by name."""
