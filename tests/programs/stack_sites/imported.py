"""Allocates while it is imported."""

from device import take

take("import_time")  # site import_time: <module> < ~ < imports@import < main
