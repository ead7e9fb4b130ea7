"""The command line: one thin command per arrow; parse, call, print."""
