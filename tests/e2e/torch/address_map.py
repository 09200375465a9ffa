"""A map of address ranges that do not overlap, with queries for the ranges that overlap others."""

import bisect


class AddressMap:
    """Objects with `address` and `size`, by address."""

    def __init__(self):
        self.things = {}
        self._addresses = []  # sorted

    def __len__(self):
        return len(self.things)

    def __iter__(self):
        """Iterates in the order of addresses; objects may be removed meanwhile."""
        return (self.things[address] for address in list(self._addresses))

    def add(self, thing):
        assert thing.address not in self.things, f"{thing.address:#x} is taken"
        self.things[thing.address] = thing
        bisect.insort(self._addresses, thing.address)

    def pop(self, address):
        """Removes and returns what begins at the address, or returns None."""
        thing = self.things.pop(address, None)
        if thing is not None:
            del self._addresses[bisect.bisect_left(self._addresses, address)]
        return thing

    def at(self, address):
        """Returns what covers the address, or None."""
        place = bisect.bisect_right(self._addresses, address) - 1
        thing = self.things[self._addresses[place]] if place >= 0 else None
        return thing if thing and address < thing.address + thing.size else None

    def overlapping(self, address, size):
        found = self.at(address)
        first = bisect.bisect_right(self._addresses, address)
        end = bisect.bisect_left(self._addresses, address + size)
        return ([found] if found else []) + [self.things[a] for a in self._addresses[first:end]]
