"""The script that embedded.cc runs in each of its interpreters; sites.py describes the notation.

embedded.cc defines the functions `allocate` and `call`, and ROUND, the number of the interpreter.
"""

import sys
import threading

from notes import note, size_of


def take(site):
    name = f"{site}_{ROUND}"  # noqa: F821
    note(name, sys._getframe())
    allocate(size_of(name))  # noqa: F821  @take


def plain():
    take("plain")  # @plain
    # site plain_1: plain@plain < <module>@calls_plain < native cpp::Run@run < native main@round_1
    # site plain_2: plain@plain < <module>@calls_plain < native cpp::Run@run < native main@round_2


def called():
    take("called")  # @called
    # site called_1: called@called < native cpp::Call@call < <module>@calls_back
    # < native cpp::Run@run < native main@round_1
    # site called_2: called@called < native cpp::Call@call < <module>@calls_back
    # < native cpp::Run@run < native main@round_2


def on_thread():
    take("thread")  # @thread
    # site thread_1: on_thread@thread < ~
    # site thread_2: on_thread@thread < ~


plain()  # @calls_plain
call(called)  # noqa: F821  @calls_back
thread = threading.Thread(target=on_thread)
thread.start()
thread.join()
