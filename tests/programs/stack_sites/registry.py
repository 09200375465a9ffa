"""Sites in the order of their definition. `@site` adds a function and changes nothing else."""

import sys

ALL = []


def site(function):
    ALL.append(function)
    return function


def since(*version):
    """For sites that older versions do not have."""
    return site if sys.version_info >= version else lambda function: function
