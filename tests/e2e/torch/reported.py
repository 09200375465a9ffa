"""PyTorch's own reports at the moments of a program (tests/programs/torch/moments.py)."""

import pickle


class Reported:
    """PyTorch's report of a moment."""

    def __init__(self, path):
        state = pickle.loads(path.read_bytes())
        self.name, self.index, self.pid = state["name"], state["index"], state["pid"]
        self.statistics = state["stats"]  # device -> memory_stats()
        self.segments = state["snapshot"]["segments"]
        self.traces = state["snapshot"].get("device_traces")  # only at the end

    def blocks(self, state):
        """Returns (device, address, size, stream) of each block in that state, in order."""
        return sorted(
            (segment["device"], block["address"], block["size"], segment["stream"])
            for segment in self.segments
            for block in segment["blocks"]
            if block["state"] == state
        )

    def ranges(self):
        """Returns (device, address, size) of each segment, in the order of addresses."""
        return sorted((s["device"], s["address"], s["total_size"]) for s in self.segments)


def read(folder):
    """Returns process id -> its moments in order."""
    processes = {}
    for path in folder.glob("*.pickle"):
        moment = Reported(path)
        processes.setdefault(moment.pid, []).append(moment)
    for moments in processes.values():
        moments.sort(key=lambda moment: moment.index)
    return processes
