"""The sites in order of definition. `@site` registers a function and returns it unchanged."""

import sys

ALL = []


def site(function):
    ALL.append(function)
    return function


def since(*version):
    """Returns the decorator for sites that versions of Python before `version` do not have."""
    return site if sys.version_info >= version else lambda function: function
