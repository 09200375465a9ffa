"""Python threads."""

import concurrent.futures
import threading

from device import take
from registry import site


def work():
    take("thread")  # site thread: work < ~


@site
def starts_a_thread():
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()


class Worker(threading.Thread):
    def run(self):
        take("thread_run")  # site thread_run: Worker.run < ~


@site
def thread_class():
    worker = Worker()
    worker.start()
    worker.join()


@site
def timer():
    timer = threading.Timer(0, take, ["timer"])  # site timer: ~
    timer.start()
    timer.join()


@site
def pool():
    with concurrent.futures.ThreadPoolExecutor(2) as executor:
        list(executor.map(in_pool, ["pool"]))


def in_pool(name):
    take(name)  # site pool: in_pool < ~


@site
def local_data():
    class Local(threading.local):
        def __init__(self):
            take(threading.current_thread().name)  # @local_init
            # site local_main: local_data.<locals>.Local.__init__@local_init
            # < local_data@local_main < main
            # site local_thread: local_data.<locals>.Local.__init__@local_init
            # < local_data.<locals>.<lambda>@local_touch < ~

    threading.current_thread().name = "local_main"
    local = Local()  # @local_main
    thread = threading.Thread(
        target=lambda: local.__dict__,  # @local_touch
        name="local_thread",
    )
    thread.start()
    thread.join()
    threading.current_thread().name = "MainThread"


@site
def two_threads_in_each_other():
    """Both threads are inside a call at the same time, each with its own stack."""
    barrier = threading.Barrier(2)

    def first():
        barrier.wait()
        take("both_first")  # site both_first: two_threads_in_each_other.<locals>.first < ~
        barrier.wait()

    def second():
        barrier.wait()
        take("both_second")  # site both_second: two_threads_in_each_other.<locals>.second < ~
        barrier.wait()

    threads = [threading.Thread(target=first), threading.Thread(target=second)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
