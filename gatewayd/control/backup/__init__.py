"""Backup and restore: store, engines' folders and, where it is asked for, secrets, in one file (docs/control-plane.md)."""
