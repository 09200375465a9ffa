"""What PyTorch said at the moments of a program (tests/programs/torch/moments.py)."""

import pickle


class Said:
    """A moment as PyTorch sees it."""

    def __init__(self, path):
        says = pickle.loads(path.read_bytes())
        self.name, self.index, self.pid = says["name"], says["index"], says["pid"]
        self.statistics = says["stats"]  # device -> memory_stats()
        self.segments = says["snapshot"]["segments"]
        self.traces = says["snapshot"].get("device_traces")  # at the end only

    def blocks(self, state):
        """(device, address, size, stream) of each block in that state, in order."""
        return sorted(
            (segment["device"], block["address"], block["size"], segment["stream"])
            for segment in self.segments
            for block in segment["blocks"]
            if block["state"] == state
        )

    def ranges(self):
        """(device, address, size) of each segment, in the order of addresses."""
        return sorted((s["device"], s["address"], s["total_size"]) for s in self.segments)


def read(folder):
    """Process id -> its moments in order."""
    processes = {}
    for path in folder.glob("*.pickle"):
        moment = Said(path)
        processes.setdefault(moment.pid, []).append(moment)
    for moments in processes.values():
        moments.sort(key=lambda moment: moment.index)
    return processes
