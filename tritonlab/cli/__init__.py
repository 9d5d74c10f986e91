"""The verbs: each resolves its arguments, calls one package, renders, returns an exit code."""
