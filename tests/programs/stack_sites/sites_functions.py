"""Function calls of every form."""

import functools

from device import take
from registry import site


@site
def plain():
    take("plain")  # site plain: plain < main


@site
def multi_line_arguments():
    max(
        1,
        2,
        take("multi_line_arguments"),  # site multi_line_arguments: multi_line_arguments < main
    )


def through(function, *_):
    return function()  # @through


@site
def multi_line_call():
    through(  # @multi_line_call
        lambda: take("multi_line_call"),  # site multi_line_call: multi_line_call.<locals>.<lambda>
        # < through@through < multi_line_call@multi_line_call < main
        "an argument that stands on a line of its own",
    )


@site
def several_on_a_line():
    # site first_of_line: several_on_a_line@several < main
    # site second_of_line: several_on_a_line@several < main
    take("first_of_line"), take("second_of_line")  # @several


@site
def outer():
    def inner():
        take("inner")  # site inner: outer.<locals>.inner < outer@calls_inner < main

    inner()  # @calls_inner


@site
def lambda_in_a_default():
    def with_default(call=lambda: take("default")):  # site default:
        # lambda_in_a_default.<locals>.<lambda>@default
        # < lambda_in_a_default.<locals>.with_default@calls_default
        # < lambda_in_a_default@calls_with_default < main
        call()  # @calls_default

    with_default()  # @calls_with_default


def decorator(function):
    @functools.wraps(function)
    def wrapper(*arguments):
        return function(*arguments)  # @wrapper

    return wrapper


@decorator
def decorated(depth):
    take("decorated")  # site decorated: decorated < decorator.<locals>.wrapper@wrapper
    # < calls_decorated@calls_decorated < main


@site
def calls_decorated():
    decorated(1)  # @calls_decorated


@site
def decorator_at_work():
    def notices(function):
        take("decorating")  # site decorating: decorator_at_work.<locals>.notices
        # < decorator_at_work@decorating_call < main
        return function

    @notices  # @decorating_call{>=3.11}
    def unused():  # @decorating_call{<3.11}
        pass


@site
def list_comprehension():
    [take("list_comp") for _ in range(1)]  # site list_comp:
    # list_comprehension.<locals>.<listcomp>@list_comp{<3.12} < list_comprehension@list_comp < main


@site
def nested_comprehension():
    {n: {take("set_comp") for _ in range(n)} for n in (1,)}  # @nested_comp site set_comp:
    # nested_comprehension.<locals>.<dictcomp>.<setcomp>@nested_comp{<3.12}
    # < nested_comprehension.<locals>.<dictcomp>@nested_comp{<3.12}
    # < nested_comprehension@nested_comp < main


@site
def generator_expression():
    sum(1 for _ in [0] if take("genexpr"))  # site genexpr:
    # generator_expression.<locals>.<genexpr>@genexpr < generator_expression@genexpr < main


@site
def recursion(depth=3):
    if depth == 0:
        take("recursion")  # site recursion: recursion < recursion@recursion < recursion@recursion
        # < recursion@recursion < main
    else:
        recursion(depth - 1)  # @recursion


def descend(depth):
    if depth == 0:
        take("deep")  # site deep: descend < descend@descend < descend@descend < ...
    else:
        descend(depth - 1)  # @descend


@site
def deep_recursion():
    descend(600)


@site
def keywords_and_unpacking():
    def target(*arguments, **words):
        take("unpacked")  # site unpacked: keywords_and_unpacking.<locals>.target
        # < keywords_and_unpacking@unpacked < main

    target(*[1, 2], **{"three": 3})  # @unpacked


@site
def partial():
    functools.partial(take, "partial")()  # site partial: partial < main


def cached(_):
    return take("cached")  # site cached: cached < calls_cached@calls_cached < main


@site
def calls_cached():
    functools.lru_cache(maxsize=4)(cached)(7)  # @calls_cached


def naïve_größe():
    take("latin")  # site latin: naïve_größe < calls_unicode@calls_latin < main


def меню():
    take("cyrillic")  # site cyrillic: меню < calls_unicode@calls_cyrillic < main


@site
def calls_unicode():
    naïve_größe()  # @calls_latin
    меню()  # @calls_cyrillic
