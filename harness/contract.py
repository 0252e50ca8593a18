#!/usr/bin/python3
"""usage: contract.py SERIES_DIR [TREE_DIR]

Is the table in docs/contract.md right? Each patch that it names is the beginning of
one subject in SERIES_DIR, each function is in what that patch adds or edits, each
test is added by some patch, with the part in quotes behind it; no point and no selftest of batching is left out. With
TREE_DIR, a directory with the files of the series as it leaves them, functions are
looked up there as well: the file that is named has to define them. Functions in
docs/architecture.dot have to be in some patch too, or be the kernel's own."""

import glob
import os
import re
import sys

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# of the design
LAST_POINT = 19
DRIVER = "drivers/net/ovpn/"
SELFTESTS = "tools/testing/selftests/net/ovpn/"
# in the picture, and there before
KERNEL = {"validate_xmit_skb", "skb_gso_segment", "skb_cow_data", "udp_tunnel_xmit_skb", "ovpn_encrypt_post", "ovpn_tcp_send_skb"}


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def subject(mail):
    """the subject of a mail without [PATCH ...]"""
    line = re.search(r"^Subject: (.*(?:\n[ \t].*)*)", mail, re.M)[1]
    return re.sub(r"^\[[^]]*\] *", "", re.sub(r"\n[ \t]+", " ", line))


def rows(text):
    """(point, patch, code, test) of each line of the table"""
    for line in text.split("\n"):
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if line.startswith("|") and len(cells) == 4 and cells[0] != "point" and not set(cells[0]) <= set("-"):
            yield cells


def defines(source, function):
    """a definition begins in the first column and is no prototype"""
    return re.search(rf"^[a-z][^;{{}}()]*\b{function}\([^;{{]*\)\s*\{{", source, re.M) is not None


def suites(mails):
    """names of the KUnit suites that patches add or edit"""
    diff = "".join(mails.values())
    found = set(re.findall(r"^\+static struct kunit_suite \w+ = \{\n(?:\+.*\n)*?\+\s*\.name\s*= \"(\w+)\"", diff, re.M))
    # a suite that was there before
    return found | {"net_core"} if "net/core/net_test.c" in diff else found


def wrong(mails, tree):
    """yield what is not right"""
    names = {subject(mail): mail for mail in mails.values()}
    diff = "".join(mails.values())
    tests = set(re.findall(rf"^\+\+\+ b/{SELFTESTS}(test-[\w-]+\.sh)$", diff, re.M))
    named_tests, points, patches = set(), set(), []

    for point, patch, code, test in rows(read(os.path.join(TOP, "docs/contract.md"))):
        number = re.match(r"(\d+) ", point)
        if number:
            points.add(int(number[1]))
        if patch:
            patches = []
            for title in patch.split("; "):
                found = [name for name in names if name.startswith(title)]
                patches += [names[name] for name in found]
                if len(found) != 1:
                    yield f"{point}: {len(found)} patches begin with '{title}'"
        path = None
        if not code:
            yield f"{point}: no code"
        for word in re.findall(r"`([^`]+)`", code):
            if re.search(r"\.[ch]$", word):
                path = word if "/" in word else DRIVER + word
                continue
            name = word.removesuffix("()")
            if not any(re.search(rf"\b{name}\b", mail) for mail in patches):
                yield f"{point}: {word} is in none of the patches that are named"
            if path is None:
                yield f"{point}: {word}: in which file?"
            elif tree and not os.path.exists(os.path.join(tree, path)):
                yield f"{point}: no file {path}"
            elif tree and word.endswith("()") and not defines(read(os.path.join(tree, path)), name):
                yield f"{point}: {path} does not define {word}"
            elif tree and not re.search(rf"\b{name}\b", read(os.path.join(tree, path))):
                yield f"{point}: {path} does not have {word}"
        for file, parts in re.findall(r'(test-[\w-]+\.sh)((?: "[^"]+")*)', test):
            named_tests.add(file)
            script = "".join(re.findall(rf"^diff --git a/\S+ b/{SELFTESTS}{file}$.*?(?=^diff --git |\Z)", diff, re.M | re.S))
            for part in re.findall(r'"([^"]+)"', parts):
                if part + '"' not in script:
                    yield f"{point}: {file} has no part '{part}'"
        for suite in set(re.findall(r"`(\w+)`", test)) - suites(mails):
            yield f"{point}: no KUnit suite {suite}"
        if not test:
            yield f"{point}: no test"

    for test in sorted(named_tests - tests):
        yield f"no selftest {test}"
    for test in sorted(tests - named_tests):
        yield f"selftest {test} guards no point"
    later = re.search(r"^Not built yet: points ([\d, ]+)", read(os.path.join(TOP, "docs/contract.md")), re.M)
    later = {int(number) for number in re.findall(r"\d+", later[1])} if later else set()
    for point in sorted(later & points):
        yield f"point {point} is in the table, and said not to be built"
    for point in sorted(set(range(1, LAST_POINT + 1)) - points - later):
        yield f"point {point} is not in the table"
    picture = set(re.findall(r"\b(\w+)\(\)", read(os.path.join(TOP, "docs/architecture.dot")).replace("\\n", " ")))
    for name in sorted(picture - KERNEL):
        if not re.search(rf"\b{name}\(", diff):
            yield f"docs/architecture.dot: {name}() is in no patch"


def main():
    if len(sys.argv) not in (2, 3) or sys.argv[1].startswith("-"):
        print(__doc__)
        return int(sys.argv[1:2] not in (["-h"], ["--help"]))
    paths = sorted(glob.glob(os.path.join(sys.argv[1], "*", "[0-9]*.patch")))
    mails = {path: read(path) for path in paths if not os.path.basename(path).startswith("0000-")}
    tree = sys.argv[2] if len(sys.argv) == 3 else None
    found = list(wrong(mails, tree))
    print("\n".join(found))
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
