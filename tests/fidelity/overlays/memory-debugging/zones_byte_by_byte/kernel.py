"""Right in another way: other classes for the tools, and Python where the solution has torch."""

del _changed

from itertools import pairwise


class Guarded:
    def __init__(self, memory, start, stop, tensor):
        self.memory, self.start, self.stop, self.tensor = memory, start, stop, tensor

    def check(self):
        """Walk over all bytes outside of the tensor."""
        found, data = [], bytes(self.memory.cpu().numpy())
        place = 0
        while place < len(data):
            if self.start <= place < self.stop:
                place = self.stop
                continue
            if data[place] == PATTERN:
                place += 1
                continue
            end, limit = place, self.start if place < self.start else len(data)
            while end < limit and data[end] != PATTERN:
                end += 1
            if place < self.start:
                found.append(Corruption("before", self.start - end, end - place))
            else:
                found.append(Corruption("after", place - self.stop, end - place))
            place = end
        return found


def guarded_empty(shape, dtype, *, red_zone=256, device="cpu"):
    if red_zone < 16:
        raise ValueError(f"red_zone is {red_zone}; at least 16 bytes are needed")
    shape = torch.Size(shape)
    zone = (red_zone + 15) // 16 * 16  # allocations begin at multiples of 16
    nbytes = shape.numel() * torch.empty((), dtype=dtype).element_size()
    memory = torch.empty(zone + nbytes + zone, dtype=torch.uint8, device=device)
    memory.fill_(PATTERN)
    tensor = memory[zone:zone + nbytes].view(dtype).reshape(shape)
    if dtype.is_floating_point or dtype.is_complex:
        tensor[...] = float("nan")
    return Guarded(memory, zone, zone + nbytes, tensor)


def access_stats(offsets: Sequence[int], itemsize: int, base_alignment: int = 16) -> AccessStats:
    """Sectors and vector width of lanes that take the elements at ``offsets`` behind a base.

    Of the base's address it is known that ``base_alignment`` divides it. Sectors are counted as if
    it lay so many bytes behind the beginning of one, and with 16 right at the beginning.

    Raises:
        ValueError: there is no lane, or the alignment is no power of two from itemsize to 16.
    """
    if not offsets:
        raise ValueError("offsets: expected at least one lane, got none")
    if base_alignment not in (1, 2, 4, 8, 16) or base_alignment < itemsize:
        raise ValueError(f"base_alignment: expected a power of two from itemsize ({itemsize}) to "
                         f"{ALIGNMENT}, got {base_alignment}")

    offsets, start = list(offsets), base_alignment % 16
    touched = {start + o * itemsize + b for o in offsets for b in range(itemsize)}
    sectors = len({place // 32 for place in touched})
    steps = [b - a for a, b in pairwise(offsets)]
    widths = [1]
    for width in (2, 4, 8, 16):
        if width * itemsize <= base_alignment and _fits(offsets, width):
            widths.append(width)
    return AccessStats(sectors, len(touched) / (32.0 * sectors), all(s == 1 for s in steps),
                       widths[-1])
