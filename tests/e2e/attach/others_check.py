"""Several clients attach to dormant programs, concurrently or one after the other. None takes, ends or damages another
client's recording, and nothing is left behind.

Usage: others_check.py --build BUILD [NAME...]
"""

import pathlib
import signal
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "recording"))
import rig as rigs  # noqa: E402
from waiting import HANG_S, kill_and_wait, wait_for  # noqa: E402

import gate as attach_gate  # noqa: E402


class Place:
    """Programs under load, and a command line to use with them."""

    def __init__(self, rig, folder):
        self.rig, self.folder = rig, folder
        self.environment = rig.environment(folder, {})

    def load(self, threads, pause_us):
        load = attach_gate.Load(self.rig, self.folder, "--threads", threads, LD_PRELOAD=self.rig.library(),
                          GPUMEMTRACE="dormant")  # fmt: skip
        load.command(f"slow {pause_us}", "slow")
        return load, attach_gate.find_gate(self.folder / "sessions", load.pid)

    def start(self, *words):
        return subprocess.Popen([self.rig.program, *map(str, words)], env=self.environment, cwd=self.folder,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)  # fmt: skip

    def say(self, *words):
        process = self.start(*words)
        text, _ = process.communicate(timeout=HANG_S)
        assert process.returncode == 0, (words, text)
        return text

    def is_complete(self, name):
        return rigs.Recording(self.rig, self.folder, None).info(self.folder / name)["complete"]


def read_to(process, words):
    """Reads output until it contains the words."""
    output = ""
    for line in process.stdout:
        output += line
        if words in line:
            return
    raise AssertionError(output)


def end(load):
    code, errors = load.end()
    assert code == 0 and errors == "", (code, errors)


def one_name_for_three(place):
    """Each client gets its own file name at once, and a client that gives up deletes only its own file."""
    loads = [place.load(0, 0)[0] for _ in range(3)]
    attaches = []
    for load in loads:
        attaches.append(place.start("attach", load.pid, "-o", "run.gmt"))
        wait_for("the output file", lambda: len(list(place.folder.glob("*.gmt"))) == len(attaches))
    for n in (1, 2):
        loads[n].command("poke", "poked")
        text, _ = attaches[n].communicate(timeout=HANG_S)
        assert f"recording {loads[n].pid} to {place.folder}/run.{n}.gmt" in text, text
    read_to(attaches[0], "waiting for the next GPU call")
    attaches[0].send_signal(signal.SIGINT)
    text, _ = attaches[0].communicate(timeout=HANG_S)
    assert attaches[0].returncode == 1 and "interrupted" in text, text
    for n in (1, 2):
        loads[n].command("poke", "poked")
        detach = place.start("detach", loads[n].pid)
        wait_for("the end of the attach request", lambda: attach_gate.find_gate(
            place.folder / "sessions", loads[n].pid).word(attach_gate.WANTED) == 0)  # fmt: skip
        loads[n].command("poke", "poked")
        text, _ = detach.communicate(timeout=HANG_S)
        assert text == f"{place.folder}/run.{n}.gmt\n", text
        assert place.is_complete(f"run.{n}.gmt")
    assert sorted(p.name for p in place.folder.glob("*.gmt")) == ["run.1.gmt", "run.2.gmt"]
    for load in loads:
        end(load)


def finished_watch_ends_no_other_recording(place):
    """A watch that was stopped (^Z) in the meantime finds its recording detached and another one started."""
    load, gate = place.load(1, 1000)
    watch = place.start("attach", load.pid, "--watch", "1h", "-o", "first.gmt")
    read_to(watch, f"recording {load.pid} to ")
    watch.send_signal(signal.SIGSTOP)
    wait_for("the stop of the process", lambda: pathlib.Path(f"/proc/{watch.pid}/stat").read_text().rpartition(")")[2].split()[0] == "T")
    place.say("detach", load.pid)
    place.say("attach", load.pid, "-o", "second.gmt")
    second = gate.word(attach_gate.NOW)
    watch.send_signal(signal.SIGCONT)
    watch.communicate(timeout=HANG_S)
    assert gate.word(attach_gate.WANTED) == gate.word(attach_gate.NOW) == second, "the second recording was ended"
    place.say("detach", load.pid)
    assert place.is_complete("first.gmt") and place.is_complete("second.gmt")
    end(load)


def memory_goes_where_the_collector_was_killed(place):
    load, gate = place.load(2, 1000)
    empty = gate.blocks()
    place.say("attach", load.pid, "-o", "run.gmt")
    wait_for("the collector", lambda: gate.word(attach_gate.COLLECTOR_PID) != 0)
    kill_and_wait(gate.word(attach_gate.COLLECTOR_PID))
    text = place.say("detach", load.pid)
    assert "its collector had already ended" in text, text
    wait_for("the memory to go", lambda: gate.blocks() <= empty)
    end(load)


def nothing_is_written_behind_the_end(place):
    """The thread that starts a recording writes initial events; another client ends the recording meanwhile."""
    load, gate = place.load(4, 20)
    empty = gate.blocks()
    for round in range(50):
        number = gate.request_attach()
        while gate.word(attach_gate.NOW) != number:
            pass
        gate.withdraw()
        while gate.word(attach_gate.NOW) != 0:
            pass
        wait_for("the release of the memory", lambda: gate.blocks() <= empty)
        load.pause()  # all threads have finished their current calls
        assert gate.blocks() <= empty, f"{(gate.blocks() - empty) * 512} bytes in round {round}"
        load.command("go", "going")
    end(load)


def recording_that_could_not_be_written_is_reported(place):
    """The limit has the same effect as a disk that was full from the start; the collector inherits it."""
    load, _ = place.load(2, 1000)
    limited = ["bash", "-c", 'ulimit -f 0; exec "$@"', "bash", place.rig.program]
    subprocess.run([*limited, "attach", str(load.pid), "-o", "run.gmt"], env=place.environment, cwd=place.folder,
                   capture_output=True, check=True, timeout=HANG_S)
    detach = place.start("detach", load.pid)
    text, _ = detach.communicate(timeout=HANG_S)
    assert detach.returncode == 1 and "run.gmt is not complete" in text, (detach.returncode, text)
    assert (place.folder / "run.gmt").exists(), "detach deleted the file"
    end(load)


def client_is_killed_before_anything_is_recorded(place):
    """The file that it created is empty: detach reports this and deletes it."""
    load, gate = place.load(0, 0)
    attach = place.start("attach", load.pid, "-o", "run.gmt")
    wait_for("a collector", lambda: gate.word(attach_gate.COLLECTOR_PID) != 0)
    attach.kill()
    attach.communicate()
    assert "nothing was recorded yet" in place.say("detach", load.pid)
    assert not list(place.folder.glob("*.gmt"))
    end(load)


CASES = [
    one_name_for_three,
    client_is_killed_before_anything_is_recorded,
    recording_that_could_not_be_written_is_reported,
    finished_watch_ends_no_other_recording,
    memory_goes_where_the_collector_was_killed,
    nothing_is_written_behind_the_end,
]


def placed(case):
    return case.__name__, lambda rig, folder: case(Place(rig, folder))


if __name__ == "__main__":
    sys.exit(rigs.main_of_cases(list(map(placed, CASES)), __doc__, torch=False))
