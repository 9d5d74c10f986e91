"""What it costs to compare a class, and whom it lists.

    python -m tests.benchmarks.similarity [--json FILE]

600 submissions of the size of softmax: 580 students who work alone, 20 of them with a running
maximum, and a copy of each of these 20 under a disguise of the tests. One process, in CPU seconds.
"""

import argparse
import json
import os
import random
import time
from pathlib import Path

from tests.classroom.similarity.disguises import DISGUISES
from tests.classroom.similarity.population import given, honest, of_family
from tritonlab.classroom.similarity.compare import ClassSource, compare
from tritonlab.classroom.similarity.page import page

STUDENTS, FAMILY, COPIES = 560, 20, 20
LIMIT_S = 5.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path)
    chosen = parser.parse_args()
    draw = random.Random(1)
    alone = [*honest(STUDENTS), *(ClassSource(f"f{n}", *of_family(n)) for n in range(FAMILY))]
    names = list(DISGUISES)
    copies = [ClassSource(f"{alone[-1 - n % FAMILY].student} copied by {n}",
                    DISGUISES[names[n % len(names)]](alone[-1 - n % FAMILY].source, draw))
              for n in range(COPIES)]
    submissions = [*alone, *copies]
    started = time.process_time()
    similarity = compare(submissions, given())
    compared_s = time.process_time() - started
    html = page(similarity, {one.student: one.source for one in submissions}, "hw1")
    page_s = time.process_time() - started - compared_s
    right = {frozenset(one.students) for one in similarity.pairs
             if len({student.split()[0] for student in one.students}) == 1}
    figures = {"submissions": len(submissions), "compare_s": round(compared_s, 2),
               "page_s": round(page_s, 2), "page_bytes": len(html.encode()), "limit_s": LIMIT_S,
               "copies": COPIES, "copies_listed": len({student for pair in right
                                                       for student in pair if " " in student}),
               "other_pairs": len(similarity.pairs) - len(right),
               "cpus": len(os.sched_getaffinity(0))}
    print(json.dumps(figures, indent=1))
    if chosen.json:
        chosen.json.write_text(json.dumps(figures, indent=1) + "\n")


if __name__ == "__main__":
    main()
