"""Tools for authors of modules: checks, mutants, parallel runs, a scaffold."""
