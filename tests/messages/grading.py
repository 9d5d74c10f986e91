"""What is said of an exercise: grade, inspect, bench."""

from __future__ import annotations

import errno
from unittest import mock

from grader.sandbox import SandboxBroken
from tests.messages.stage import Situation
from tests.messages.steps import (
    BUG,
    HOST,
    changed,
    course_without,
    damaged,
    did,
    failing,
    fifo,
    folder_as_journal,
    impatient,
    no_grader,
    raising,
    right,
    started,
    typed,
    unreadable,
    with_gpu,
    wrote,
)

S = Situation

SITUATIONS: dict[str, list[Situation]] = {
    "grade": [
        S("no workspace", "tritonlab grade"),
        S("no workspace, with an id", "tritonlab grade doubling"),
        S("nothing was started", "tritonlab grade",
          (started, did(lambda s: (s.mark / "journal.jsonl").unlink()))),
        S("an unknown id", "tritonlab grade dubling"),
        S("no such file", "tritonlab grade nothing.py"),
        S("a file of no module", "tritonlab grade mine.py",
          (did(lambda s: (s.home / "mine.py").write_text("")),)),
        S("a folder", "tritonlab grade .", (started,)),
        S("the exercise is gone", "tritonlab grade", (started, did(lambda s: s.kernel.unlink()))),
        S("a pipe", "tritonlab grade", (started, fifo)),
        S("a file that may not be read", "tritonlab grade", (started,), (unreadable,)),
        S("too large a file", "tritonlab grade", (started, wrote("#" * 1_000_001))),
        S("blanks left", "tritonlab grade", (started,)),
        S("a syntax error", "tritonlab grade", (started, wrote("def doubling(x:\n    return x\n"))),
        S("not a text", "tritonlab grade",
          (started, did(lambda s: s.kernel.write_bytes(b"\xff\xfe\x00")))),
        S("an empty file", "tritonlab grade", (started, wrote(""))),
        S("a right kernel", "tritonlab grade", (started, right)),
        S("a right kernel, with every check by name", "tritonlab grade --verbose",
          (started, right)),
        S("a wrong kernel", "tritonlab grade", (started, changed("2 * x, mask", "3 * x, mask"))),
        S("a wrong kernel after two hints", "tritonlab grade",
          (started, changed("2 * x, mask", "3 * x, mask"), typed("tritonlab hint --todo 3"),
           typed("tritonlab hint --todo 3"))),
        S("an access out of bounds", "tritonlab grade",
          (started, changed("tl.load(x_ptr + offs, mask=mask)", "tl.load(x_ptr + offs)"))),
        S("an exception", "tritonlab grade",
          (started, changed(HOST, f"    raise RuntimeError('no idea')\n{HOST}"))),
        S("an exception while it is imported", "tritonlab grade",
          (started, changed("import torch\n", "import torch\nimport nothing_of_this_name\n"))),
        S("it hangs", "tritonlab grade", (started, changed(
            HOST, f"    while x.shape == (3, 5, 7):\n        pass\n{HOST}")), (impatient,)),
        S("it crashes", "tritonlab grade", (started, changed(
            HOST, f"    import ctypes\n    ctypes.string_at(0)\n{HOST}"))),
        S("it ends the process", "tritonlab grade", (started, changed(
            HOST, f"    import os\n    os._exit(0)\n{HOST}"))),
        S("it floods the terminal", "tritonlab grade", (started, changed(
            HOST, f"    print('flood ' * 9999)\n{HOST}"))),
        S("only the slow part is wrong", "tritonlab grade", (started, changed(
            "    doubling_kernel[grid]", "    doubling_kernel[grid](x, out, n_elements, BLOCK_SIZE="
            "block_size)\n    doubling_kernel[grid]"))),
        S("one case alone, right", "tritonlab grade --case 37", (started, right)),
        S("one case alone, wrong", "tritonlab grade --case 37", (started, changed(
            "2 * x, mask", "3 * x, mask"))),
        S("an unknown case", "tritonlab grade --case colour", (started, right)),
        S("several cases", "tritonlab grade --case matrix", (started, right)),
        S("no case of its own", "tritonlab grade --case 'every launch compiles'", (started, right)),
        S("a seed", "tritonlab grade --seed 00ff", (started, right)),
        S("a seed that is none", "tritonlab grade --seed xyz", (started, right)),
        S("a target", "tritonlab grade --target a100", (started, right)),
        S("an unknown target", "tritonlab grade --target a1000", (started, right)),
        S("a file elsewhere, with its module", "tritonlab grade mine.py --module doubling",
          (did(lambda s: (s.home / "mine.py").write_text(s.solution)),)),
        S("a full disk", "tritonlab grade", (started, right), (failing(errno.ENOSPC),)),
        S("a read-only disk", "tritonlab grade", (started, right), (failing(errno.EROFS),)),
        S("a damaged journal", "tritonlab grade", (started, right, damaged)),
        S("a journal that cannot be read", "tritonlab grade doubling",
          (started, right, folder_as_journal)),
        S("a course without hidden tests", "tritonlab grade",
          (started, right, course_without("suites/*/01-doubling/suite.py"))),
        S("the grader does not start", "tritonlab grade", (started, right),
          (no_grader(SandboxBroken("The grader's helper process ended with status 1.")),)),
        S("no temporary folder", "tritonlab grade", (started, right),
          (no_grader(OSError(errno.ENOSPC, "No space left on device")),)),
        S("a mistake of ours", "tritonlab grade", (started, right),
          (raising("tritonlab.grading.grade.grade", BUG),)),
        S("Ctrl-C", "tritonlab grade", (started, right),
          (raising("tritonlab.grading.grade.grade", KeyboardInterrupt()),), ends=False),
        S("pending, without a GPU", "tritonlab grade --pending", (started,)),
        S("pending, with another option", "tritonlab grade --pending --target a100", (started,)),
        S("pending, with nothing to be done", "tritonlab grade --pending", (started,),
          (with_gpu,
           lambda: mock.patch("tritonlab.grading.gpu_upgrade.require_gpu", lambda: None))),
    ],
    "inspect": [
        S("a right kernel", "tritonlab inspect", (started, right), figures=False),
        S("blanks left", "tritonlab inspect", (started,)),
        S("a syntax error", "tritonlab inspect", (started, wrote("def doubling(x:\n"))),
        S("it hangs", "tritonlab inspect", (started, changed(
            HOST, f"    while True: pass\n{HOST}")), (impatient,)),
        S("it does not compile", "tritonlab inspect", (started, changed(
            "tl.arange(0, BLOCK_SIZE)", "tl.arange(0, BLOCK_SIZE - 1)"))),
        S("a page", "tritonlab inspect --html page.html", (started, right)),
        S("a page in no folder", "tritonlab inspect --html nowhere/page.html", (started, right)),
        S("a page over something else", "tritonlab inspect --html mine.txt",
          (started, right, did(lambda s: (s.home / "mine.txt").write_text("")))),
        S("an unknown target", "tritonlab inspect --target a1000", (started, right)),
        S("an unknown case", "tritonlab inspect --case colour", (started, right)),
        S("no workspace", "tritonlab inspect"),
        S("an unknown id", "tritonlab inspect dubling"),
    ],
    "bench": [
        S("a right kernel", "tritonlab bench --no-gpu", (started, right), figures=False),
        S("a picture", "tritonlab bench --no-gpu --png mine.png", (started, right), figures=False),
        S("blanks left", "tritonlab bench", (started,), figures=False),
        S("a wrong kernel", "tritonlab bench", (started, changed("2 * x, mask", "3 * x, mask")),
          figures=False),
        S("no such function", "tritonlab bench --function relu", (started, right)),
        S("an unknown target", "tritonlab bench --target a1000", (started, right)),
        S("a picture with the wrong ending", "tritonlab bench --png mine.txt",
          (started, right, did(lambda s: (s.home / "mine.txt").write_text("")))),
        S("a page in no folder", "tritonlab bench --html nowhere/page.html", (started, right)),
        S("no workspace", "tritonlab bench"),
    ],
}
