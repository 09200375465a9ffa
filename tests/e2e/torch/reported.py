"""PyTorch's own reports at the moments of a program (tests/programs/torch/moments.py)."""

import pickle


class Said:
    """PyTorch's report of a moment."""

    def __init__(self, path):
        says = pickle.loads(path.read_bytes())
        self.name, self.index, self.pid = says["name"], says["index"], says["pid"]
        self.statistics = says["stats"]  # device -> memory_stats()
        self.segments = says["snapshot"]["segments"]
        self.traces = says["snapshot"].get("device_traces")  # only at the end

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
        moment = Said(path)
        processes.setdefault(moment.pid, []).append(moment)
    for moments in processes.values():
        moments.sort(key=lambda moment: moment.index)
    return processes
