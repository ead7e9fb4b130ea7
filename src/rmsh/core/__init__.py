"""What every package stands on: errors, types, configuration, files, locks, progress."""
