"""Random programs that call, return, yield, await, raise and switch in every order; after most steps the stack that is
computed from the last one is compared with the whole stack.
"""

import os
import random
import threading

from oracle import check, check_known

SEEDS = 20
STEPS = 300


class Program:
    def __init__(self, seed):
        self.random = random.Random(seed)
        self.steps = 0
        self.generators = []  # suspended ones, which other callers resume
        self.coroutines = []
        self.label = f"random program {seed}"

    def step(self, depth):
        """Does a few things, one of which may go deeper."""
        for _ in range(self.random.randrange(1, 4)):
            self.steps += 1
            if self.random.random() < 0.7:
                check_known(self.label)
            if self.random.random() < 0.05:
                check(self.label)
            if depth == 0 or self.steps > STEPS:
                continue
            self.random.choice(ACTIONS)(self, depth - 1)

    def plain(self, depth):
        self.step(depth)

    def other_line(self, depth):
        if self.random.random() < 0.5:
            self.step(depth)
        else:
            self.step(depth)
        self.step(min(depth, 1))

    def through_native(self, depth):
        sorted([0, 1], key=lambda value: self.step(depth) or value)

    def through_native_and_python(self, depth):
        list(map(lambda _: (lambda: self.step(depth))(), [0]))

    def new_class(self, depth):
        Made(self, depth)

    def raising(self, depth):
        try:
            self.step(depth)
            if self.random.random() < 0.5:
                raise ValueError
        except ValueError:
            self.step(0)
        finally:
            self.step(0)

    def new_code(self, depth):
        lines = "\n" * self.random.randrange(3)
        exec(compile(f"def made():\n{lines}  program.step(depth)\nmade()", "<made>", "exec"),
             {"program": self, "depth": depth})

    def new_generator(self, depth):
        def inner():
            while True:
                self.step(min(depth, 2))
                yield

        def outer():
            yield from inner()
        generator = self.random.choice((inner, outer))()
        next(generator)
        self.generators.append(generator)

    def old_generator(self, depth):
        if not self.generators:
            return
        generator = self.generators.pop(self.random.randrange(len(self.generators)))
        next(generator)
        if self.random.random() < 0.7:
            self.generators.append(generator)

    def new_coroutine(self, depth):
        async def inner(levels):
            self.step(min(depth, 1))
            if levels:
                await inner(levels - 1)
            await Pause()
            self.step(min(depth, 1))
        self.coroutines.append(inner(self.random.randrange(4)))
        self.old_coroutine(depth)

    def old_coroutine(self, depth):
        if not self.coroutines:
            return
        coroutine = self.coroutines.pop(self.random.randrange(len(self.coroutines)))
        try:
            coroutine.send(None)
            self.coroutines.append(coroutine)
        except StopIteration:
            pass

    def on_thread(self, depth):
        if self.random.random() < 0.3:
            thread = threading.Thread(target=self.step, args=(depth,))
            thread.start()
            thread.join()

    def in_greenlet(self, depth):
        try:
            from greenlet import getcurrent, greenlet
        except ImportError:
            return
        parent = getcurrent()

        def run():
            self.step(min(depth, 2))
            parent.switch()
            self.step(min(depth, 2))
        child = greenlet(run)
        child.switch()
        self.step(min(depth, 1))
        child.switch()


class Made:
    def __init__(self, program, depth):
        program.step(depth)


class Pause:
    def __await__(self):
        yield


ACTIONS = [Program.plain, Program.plain, Program.other_line, Program.other_line, Program.through_native,
           Program.through_native_and_python, Program.new_class, Program.raising, Program.new_code,
           Program.new_generator, Program.old_generator, Program.old_generator, Program.new_coroutine,
           Program.old_coroutine, Program.on_thread, Program.in_greenlet]


def run():
    first = int(os.environ.get("GMT_TEST_SEED", 0))
    for seed in range(first, first + SEEDS):
        program = Program(seed)
        while program.steps < STEPS:
            program.step(program.random.randrange(1, 30))
        for coroutine in program.coroutines:
            coroutine.close()
