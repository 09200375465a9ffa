#!/usr/bin/env python3
"""Checks that `ranks` answers the same from digests as from recordings, for all recordings of cases.py as the ranks of
one job: while it writes the digests, from the digests, and from the digests alone. Then, that digests which are
damaged, outdated or of no use are named or made again.

Usage: digests_check.py --build DIR
"""

import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import cases

MAX_DIGEST_BYTES = 200_000
NOBODY = 65534
OPTIONS = (("--top", "100"), ("--json",), ("--json", "--steps"))


class Job:
    def __init__(self, program, folder):
        self.program, self.folder = program, folder
        (folder / "logs").mkdir()
        (folder / "job").mkdir()
        cases.write(folder / "logs")
        for log in sorted((folder / "logs").glob("*.jsonl")):
            self.run("import", log, "-o", f"job/{log.stem}.gmt")

    def run(self, *words, code=0, user=None):
        done = subprocess.run([self.program, *map(str, words)], cwd=self.folder, capture_output=True, text=True,
                              stdin=subprocess.DEVNULL, timeout=300, user=user)
        assert done.returncode == code, done
        return done

    def answers(self, *options):
        """Returns stdout and stderr for each kind of output."""
        return [(done.stdout, done.stderr) for done in (self.run("ranks", *kind, *options, "job") for kind in OPTIONS)]

    def recordings(self):
        return sorted((self.folder / "job").glob("*.gmt"))

    def digests(self):
        return sorted((self.folder / "job").glob("*.digest"))


def digests_give_the_answers_of_recordings(job):
    expected = job.answers("--no-digest")
    assert len(json.loads(expected[1][0])["ranks"]) == len(job.recordings()) > 5 and job.digests() == [], expected
    assert job.answers() == expected  # the first of these commands writes the digests
    assert [f"{path}.digest" for path in job.recordings()] == list(map(str, job.digests())), job.digests()
    assert max(path.stat().st_size for path in job.digests()) <= MAX_DIGEST_BYTES
    assert job.answers() == expected


def digests_alone_give_the_same_rows(job):
    expected = json.loads(job.run("ranks", "--json", "--steps", "job").stdout)
    (job.folder / "away").mkdir()
    for path in job.recordings():
        path.rename(job.folder / "away" / path.name)
    alone = json.loads(job.run("ranks", "--json", "--steps", "job").stdout)
    by_glob = json.loads(job.run("ranks", "--json", "--steps", *job.digests()).stdout)
    for path in (job.folder / "away").iterdir():
        path.rename(job.folder / "job" / path.name)
    for row in expected["ranks"]:
        row["file"] += ".digest"
    assert alone["ranks"] == expected["ranks"] and alone["outliers"] == expected["outliers"]
    assert len(by_glob["ranks"]) == len(expected["ranks"])


def each_rank_counts_once_if_its_digest_is_named_too(job):
    named = [f"job/{path.name}" for path in (*job.recordings(), *job.digests())]
    rows = json.loads(job.run("ranks", "--json", *named, "job").stdout)["ranks"]
    assert len(rows) == len(job.recordings()), len(rows)


def older_part_is_no_rank(job):
    expected = job.answers()
    part = job.recordings()[0].with_suffix(".part-000003.gmt")
    shutil.copy(job.recordings()[0], part)
    assert job.answers() == expected
    part.unlink()


def damaged_digest_is_named_and_made_again(job):
    expected = job.answers()
    digest = job.digests()[0]
    whole = digest.read_bytes()
    digest.write_bytes(whole[:-20])
    done = job.run("ranks", "--json", "job")
    name = f"job/{digest.name}: this digest is damaged (CRC32C)"
    assert json.loads(done.stdout)["unused_digests"] == [name] and f"{name}; its recording was read" in done.stderr, done
    assert digest.read_bytes() == whole
    assert job.answers() == expected


def damaged_digest_without_recording_is_unread(job):
    (job.folder / "alone").mkdir()
    whole, damaged = job.digests()[:2]
    shutil.copy(whole, job.folder / "alone")
    (job.folder / "alone" / damaged.name).write_bytes(damaged.read_bytes()[:-20])
    (job.folder / "alone" / "x.gmt.digest").write_text("something else")
    done = job.run("ranks", "--json", "alone")
    answer = json.loads(done.stdout)
    assert len(answer["ranks"]) == 1 and len(answer["unread"]) == 2, answer
    assert any("x.gmt.digest is not a digest" in words for words in answer["unread"]), answer
    assert "Not read\n  alone/" in job.run("ranks", "alone").stdout


def outdated_digest_is_replaced_without_a_word(job):
    first, second = job.recordings()[:2]
    copy = job.folder / "job" / "copy.gmt"
    shutil.copy(first, copy)
    job.run("ranks", "job")
    shutil.copy(second, copy)
    expected = job.answers("--no-digest")
    assert job.answers() == expected
    copy.unlink()
    pathlib.Path(f"{copy}.digest").unlink()


def file_that_is_no_digest_is_kept(job):
    digest = job.digests()[0]
    whole = digest.read_bytes()
    digest.write_text("notes of the user")
    done = job.run("ranks", "job")
    assert "is not a digest of a recording; its recording was read" in done.stderr, done
    assert digest.read_text() == "notes of the user"
    job.run("ranks", "--digest-only", "job", code=1)
    digest.write_bytes(whole)


def unfinished_recording_gets_no_digest(job):
    cut = job.folder / "cut.gmt"
    cut.write_bytes(job.recordings()[0].read_bytes()[:-30])
    done = job.run("ranks", "--digest-only", "cut.gmt", code=1)
    assert "cut.gmt is not complete and gets no digest" in done.stderr, done
    job.run("ranks", "cut.gmt")
    assert not pathlib.Path(f"{cut}.digest").exists()


def digests_are_written_without_a_comparison(job):
    (job.folder / "new").mkdir()
    shutil.copy(job.recordings()[0], job.folder / "new" / "r0.gmt")
    done = job.run("ranks", "--digest-only", "new")
    assert done.stdout == done.stderr == "" and (job.folder / "new" / "r0.gmt.digest").exists(), done


def rules_of_the_user_need_the_recordings(job):
    (job.folder / "rules").write_text("")
    job.digests()[0].write_text("not read")
    assert job.run("ranks", "--frames-rules", "rules", "job").stderr == job.run("ranks", "--no-digest", "job").stderr
    job.run("ranks", "--digest-only", "--frames-rules", "rules", "job", code=2)
    job.digests()[0].unlink()


def folder_that_is_read_only_gets_no_digest(job):
    fixed = job.folder / "fixed"
    fixed.mkdir()
    shutil.copy(job.recordings()[0], fixed / "r0.gmt")
    expected = job.run("ranks", "--no-digest", "fixed")
    fixed.chmod(0o555)
    job.folder.chmod(0o755)
    # Root may write everywhere.
    user = NOBODY if os.geteuid() == 0 else None
    done = job.run("ranks", "fixed", user=user)
    assert (done.stdout, done.stderr) == (expected.stdout, expected.stderr), done
    assert "Permission denied" in job.run("ranks", "--digest-only", "fixed", code=1, user=user).stderr
    assert [path.name for path in fixed.iterdir()] == ["r0.gmt"]
    fixed.chmod(0o755)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, required=True)
    program = parser.parse_args().build.resolve() / "bin" / "gpumemtrace"
    with tempfile.TemporaryDirectory() as folder:
        job = Job(program, pathlib.Path(folder))
        for case in (digests_give_the_answers_of_recordings, digests_alone_give_the_same_rows,
                     each_rank_counts_once_if_its_digest_is_named_too, older_part_is_no_rank,
                     damaged_digest_is_named_and_made_again, damaged_digest_without_recording_is_unread,
                     outdated_digest_is_replaced_without_a_word, file_that_is_no_digest_is_kept,
                     unfinished_recording_gets_no_digest, digests_are_written_without_a_comparison,
                     rules_of_the_user_need_the_recordings, folder_that_is_read_only_gets_no_digest):
            case(job)
            print(f"ok     {case.__name__}")


if __name__ == "__main__":
    sys.exit(main())
