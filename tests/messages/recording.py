"""What is said of the record: status, merge, verify, report, certificate."""

from __future__ import annotations

import errno

from tests.messages.stage import Situation
from tests.messages.steps import (
    damaged,
    did,
    elsewhere,
    failing,
    forgotten,
    passed,
    started,
    typed,
)

S = Situation

SITUATIONS: dict[str, list[Situation]] = {
    "status": [
        S("no workspace", "tritonlab status"),
        S("one module open", "tritonlab status", (started,)),
        S("one module passed", "tritonlab status", (passed,)),
        S("a damaged journal", "tritonlab status", (started, damaged)),
        S("every attempt", "tritonlab status --history", (passed,)),
        S("no attempt", "tritonlab status --history"),
        S("attempts at a module", "tritonlab status doubling", (passed,)),
        S("an unknown id", "tritonlab status dubling"),
    ],
    "merge": [
        S("another workspace", "tritonlab merge other", (passed, elsewhere, started)),
        S("the same again", "tritonlab merge other",
          (passed, elsewhere, started, typed("tritonlab merge other"))),
        S("a damaged one", "tritonlab merge other", (started, damaged, elsewhere, started)),
        S("nothing there", "tritonlab merge other", (started,)),
        S("no journal there", "tritonlab merge .", (started,)),
        S("no workspace here", "tritonlab merge other"),
        S("a full disk", "tritonlab merge other", (passed, elsewhere, started),
          (failing(errno.ENOSPC),)),
    ],
    "verify": [
        S("it holds", "tritonlab verify tritonlab-workspace", (passed,)),
        S("another source", "tritonlab verify tritonlab-workspace",
          (passed, did(lambda s: s.kernel.write_text(s.solution + "# later\n")))),
        S("the source is missing", "tritonlab verify tritonlab-workspace",
          (passed, did(lambda s: s.kernel.unlink()))),
        S("another source, and what passed was not kept", "tritonlab verify tritonlab-workspace",
          (passed, did(lambda s: s.kernel.write_text(s.solution + "# later\n")), forgotten)),
        S("the source is missing, and what passed was not kept",
          "tritonlab verify tritonlab-workspace",
          (passed, did(lambda s: s.kernel.unlink()), forgotten)),
        S("nothing is claimed", "tritonlab verify tritonlab-workspace",
          (started, typed("tritonlab certificate"))),
        S("no such file", "tritonlab verify nothing.html"),
        S("no certificate", "tritonlab verify mine.json",
          (did(lambda s: (s.home / "mine.json").write_text("{}")),)),
        S("a certificate cut short", "tritonlab verify mine.json",
          (did(lambda s: (s.home / "mine.json").write_text('{"schema": 1, ')),)),
        S("no sources there", "tritonlab verify tritonlab-workspace --sources nowhere", (passed,)),
    ],
    "report": [
        S("one module passed", "tritonlab report", (passed,)),
        S("nothing passed", "tritonlab report", (started,)),
        S("a page", "tritonlab report --html report.html", (passed,)),
        S("a page in no folder", "tritonlab report --html nowhere/report.html", (started,)),
        S("no workspace", "tritonlab report"),
        S("a damaged journal", "tritonlab report", (started, damaged)),
    ],
    "certificate": [
        S("no workspace", "tritonlab certificate"),
        S("nothing passed", "tritonlab certificate", (started,)),
        S("one module passed, with a name", "tritonlab certificate --name Ada", (passed,)),
        S("a damaged journal", "tritonlab certificate", (started, damaged)),
        S("a page", "tritonlab certificate --html mine.html", (passed,)),
        S("a page in no folder", "tritonlab certificate --html nowhere/mine.html", (passed,)),
        S("a page over something else", "tritonlab certificate --html mine.txt",
          (started, did(lambda s: (s.home / "mine.txt").write_text("")))),
        S("a full disk", "tritonlab certificate", (started,), (failing(errno.ENOSPC),)),
        S("a full disk, with a name", "tritonlab certificate --name Ada", (started,),
          (failing(errno.ENOSPC),)),
        S("records are missing", "tritonlab certificate",
          (passed, did(lambda s: (s.mark / "journal.jsonl").write_text("")))),
    ],
}
