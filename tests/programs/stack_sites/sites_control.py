"""Generators, context managers and exception handling."""

import contextlib

from device import take
from registry import site


def numbers():
    take("generator")  # site generator: numbers < generators@first < main
    yield 1
    take("resumed")  # site resumed: numbers < generators@second < main
    yield 2


@site
def generators():
    numbers_of = numbers()
    next(numbers_of)  # @first
    next(numbers_of)  # @second


def inner_part():
    yield take("yield_from")  # site yield_from: inner_part < outer_part@outer_part
    # < delegates@delegates < main


def outer_part():
    yield from inner_part()  # @outer_part


@site
def delegates():
    for _ in outer_part():  # @delegates
        pass


def receives():
    value = yield
    take(value)  # site sent: receives < sends@send < main
    try:
        yield
    except ValueError:
        take("thrown")  # site thrown: receives < sends@throw < main
    try:
        yield
    finally:
        take("closed")  # site closed: receives < sends@close < main


@site
def sends():
    target = receives()
    next(target)
    target.send("sent")  # @send
    with contextlib.suppress(StopIteration):
        target.throw(ValueError())  # @throw
    target.close()  # @close


class Manager:
    def __enter__(self):
        take("enter")  # site enter: Manager.__enter__ < manages@with < main

    def __exit__(self, *_):
        take("exit")  # site exit: Manager.__exit__ < manages@with_end < main


@site
def manages():
    with Manager():  # @with @with_end{>=3.10}
        pass  # @with_end{<3.10}


@contextlib.contextmanager
def managed():
    take("managed_enter")  # site managed_enter: managed < ~ < uses_managed@managed < main
    try:
        yield
    finally:
        take("managed_exit")  # site managed_exit: managed < ~ < uses_managed@managed_end < main


@site
def uses_managed():
    with managed():  # @managed @managed_end{>=3.10}
        take("in_with")  # @managed_end{<3.10} site in_with: uses_managed < main


def fails():
    raise ValueError("in flight")


@site
def exceptions():
    try:
        fails()
    except ValueError:
        take("except")  # site except: exceptions < main
    finally:
        take("finally")  # site finally: exceptions < main


@site
def nested_exceptions():
    try:
        try:
            fails()
        finally:
            take("unwinding")  # site unwinding: nested_exceptions < main
    except ValueError as error:
        try:
            raise KeyError("second") from error
        except KeyError:
            take("chained")  # site chained: nested_exceptions < main


@site
def loop_else():
    for _ in range(2):
        pass
    else:
        take("for_else")  # site for_else: loop_else < main


@site
def conditional():
    value = None
    # The false branch spans several lines; the frame has the line of the call.
    value = (
        1
        if value
        else take(  # @conditional_call
            "conditional",
        )
    )  # site conditional: conditional@conditional_call < main


@site
def backward_jump():
    rounds = 0
    while True:
        rounds += 1
        if rounds == 3:
            take("third_round")  # site third_round: backward_jump < main
            break
