"""Coroutines and event loops."""

import asyncio

from device import take
from registry import site


async def leaf(name):
    take(name)  # @leaf
    # site awaited: leaf@leaf < branch@branch < ~ < awaits@awaits < main
    # site task: leaf@leaf < ~ < tasks@tasks < main
    # site gather_1: leaf@leaf < ~ < tasks@tasks < main
    # site gather_2: leaf@leaf < ~ < tasks@tasks < main
    await asyncio.sleep(0)
    take(name + "_later")  # @leaf_later
    # site awaited_later: leaf@leaf_later < branch@branch < ~ < awaits@awaits < main
    # site task_later: leaf@leaf_later < ~ < tasks@tasks < main
    # site gather_1_later: leaf@leaf_later < ~ < tasks@tasks < main
    # site gather_2_later: leaf@leaf_later < ~ < tasks@tasks < main


async def branch():
    await leaf("awaited")  # @branch


@site
def awaits():
    asyncio.run(branch())  # @awaits


async def several():
    task = asyncio.get_running_loop().create_task(leaf("task"))
    await task
    await asyncio.gather(leaf("gather_1"), leaf("gather_2"))


@site
def tasks():
    asyncio.run(several())  # @tasks


@site
def by_hand():
    async def coroutine():
        take("by_hand")  # site by_hand: by_hand.<locals>.coroutine < by_hand@send_none < main

    try:
        coroutine().send(None)  # @send_none
    except StopIteration:
        pass


async def counts():
    take("async_generator")  # site async_generator: counts < consumes@async_for < ~
    # < streams@streams < main
    yield 1
    await asyncio.sleep(0)
    take("async_generator_later")  # site async_generator_later: counts < consumes@async_for < ~
    # < streams@streams < main
    yield 2


class Resource:
    async def __aenter__(self):
        take("aenter")  # site aenter: Resource.__aenter__ < consumes@async_with < ~
        # < streams@streams < main

    async def __aexit__(self, *_):
        take("aexit")  # site aexit: Resource.__aexit__ < consumes@async_with_end < ~
        # < streams@streams < main


async def consumes():
    async for _ in counts():  # @async_for
        pass
    async with Resource():  # @async_with @async_with_end{>=3.10}
        pass  # @async_with_end{<3.10}
    [take("async_comp") async for _ in empty()]  # site async_comp:
    # consumes.<locals>.<listcomp>@async_comp{<3.12} < consumes@async_comp < ~
    # < streams@streams < main


async def empty():
    yield 0


@site
def streams():
    asyncio.run(consumes())  # @streams


@site
def loop_callbacks():
    loop = asyncio.new_event_loop()
    loop.call_soon(take, "call_soon")  # site call_soon: ~ < loop_callbacks@call_soon_runs < main
    loop.call_soon(loop.stop)
    loop.run_forever()  # @call_soon_runs
    loop.run_until_complete(  # @executor
        loop.run_in_executor(None, in_executor)
    )
    loop.run_until_complete(loop.shutdown_default_executor()) if hasattr(
        loop, "shutdown_default_executor"
    ) else None
    loop.close()


def in_executor():
    take("executor_thread")  # site executor_thread: in_executor < ~
