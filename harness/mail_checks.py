#!/usr/bin/python3
"""usage: mail_checks.py [--submitter 'NAME <ADDRESS>'] [--maintainers FILE] DIR
       mail_checks.py --list

What netdev's own checks and its maintainers refuse in a series, as far as the
mails show it. DIR holds the mails: 0000-*.patch is the cover letter. Prints
"ok NAME" or "not ok NAME" for each check, below that what is wrong, and "end" at the
end. Checks of
who sends need --submitter, those of To and Cc --maintainers: a file with lines
"MAIL<TAB>ADDRESS", what scripts/get_maintainer.pl says of each mail."""

import argparse
import email
import email.header
import email.utils
import glob
import os
import re
import sys

# netdev takes no more at a time
MAX_PATCHES = 15
# columns of a subject without its prefix and of the text below it, which git log
# sets in by 4; a cover letter is a mail only
MAX_COLUMNS = 75
MAX_COVER_COLUMNS = 80
# the tree that features are for
TARGET = os.environ.get("TARGET", "net-next")

KERNEL_CODE = re.compile(r"(drivers|net|include|lib|crypto)/")
TRAILER = re.compile(r"([A-Z][A-Za-z]*(?:-[A-Za-z]+)*): (.*)")


class Mail:
    """A mail as git sees it: subject, author, message, notes, diff."""

    def __init__(self, path):
        self.name = os.path.basename(path)
        self.is_cover = self.name.startswith("0000-")
        with open(path, "rb") as file:
            mail = email.message_from_bytes(file.read())
        self.subject = decoded(mail["Subject"])
        self.author = decoded(mail["From"])
        self.recipients = {
            address.lower()
            for _, address in email.utils.getaddresses(mail.get_all("To", []) + mail.get_all("Cc", []))
        }
        body = mail.get_payload(decode=True).decode("utf-8", "replace")
        text, _, self.diff = ("\n" + body).partition("\ndiff --git ")
        self.diff = self.diff and "diff --git " + self.diff
        self.message, _, self.notes = text[1:].partition("\n---\n")
        self.title = re.sub(r"^\[[^]]*\] *((fixup|squash|amend)! )*", "", self.subject)

    def trailers(self, name=None):
        """(name, value) of each trailer: lines of the last paragraph"""
        last = self.message.rstrip().rpartition("\n\n")[2]
        found = [match.groups() for match in map(TRAILER.fullmatch, last.split("\n")) if match]
        return [(key, value) for key, value in found if name in (None, key)]

    def added(self, pattern=""):
        """(file, line) for each line that it adds to files whose name matches"""
        file, in_hunk = None, False
        for line in self.diff.split("\n"):
            if line.startswith("diff --git "):
                in_hunk = False
            elif line.startswith("@@ "):
                in_hunk = True
            elif not in_hunk and line.startswith("+++ "):
                file = line[6:]
            elif in_hunk and line.startswith("+") and re.search(pattern, file):
                yield file, line[1:]

    def files(self):
        """names of all files that it touches"""
        return re.findall(r"^diff --git a/\S+ b/(\S+)$", self.diff, re.M)


class Series:
    """The mails of a directory, and who sends them to whom."""

    def __init__(self, directory, submitter=None, maintainers=None):
        mails = [Mail(path) for path in sorted(glob.glob(os.path.join(directory, "*.patch")))]
        self.cover = next((mail for mail in mails if mail.is_cover), None)
        self.patches = [mail for mail in mails if not mail.is_cover]
        self.mails = mails
        self.submitter = submitter
        self.maintainers = maintainers


def decoded(header):
    """a header with its encoded words and line breaks resolved"""
    parts = email.header.decode_header(re.sub(r"\s*\n\s+", " ", header or ""))
    return "".join(part if isinstance(part, str) else part.decode(charset or "utf-8", "replace") for part, charset in parts).strip()


def same_person(one, other):
    """is it the same name and address, however they are quoted?"""
    return email.utils.parseaddr(one) == email.utils.parseaddr(other)


# A check is a function that yields (mail or None, what is wrong). What it needs
# beside the mails is an argument of the decorator.
CHECKS = []


def check(needs=None):
    """register a check"""

    def register(function):
        function.needs = needs
        CHECKS.append(function)
        return function

    return register


# ---- the series ----


@check()
def has_patches(series):
    if not series.patches:
        yield None, "no patches"


@check()
def at_most_15_patches(series):
    if len(series.patches) > MAX_PATCHES:
        yield None, f"{len(series.patches)} patches, netdev takes at most {MAX_PATCHES} at a time"


@check()
def cover_letter(series):
    if len(series.patches) > 1 and not series.cover:
        yield None, f"{len(series.patches)} patches and no cover letter"


@check()
def numbered(series):
    """[... i/n] without a gap, and what is in front of it the same everywhere"""
    if len(series.mails) == 1 and "/" not in series.mails[0].subject.partition("]")[0]:
        return
    total, prefix = len(series.patches), None
    for place, mail in enumerate(series.mails, 0 if series.cover else 1):
        match = re.match(r"\[(.*) (\d+)/(\d+)\] ", mail.subject)
        if not match:
            yield mail, "no [... i/n] in its subject"
            continue
        if (int(match[2]), int(match[3])) != (place, total):
            yield mail, f"is {match[2]}/{match[3]}, should be {place}/{total}"
        prefix = prefix or match[1]
        if match[1] != prefix:
            yield mail, f"prefix [{match[1]}], the first mail has [{prefix}]"


@check()
def subject_prefix(series):
    form = rf"\[(RFC|PATCH|RFC PATCH|PATCH RFC) {TARGET}( v[1-9]\d*)?( \d+/\d+)?\] "
    for mail in series.mails:
        if not re.match(form, mail.subject):
            yield mail, f"does not begin with [PATCH {TARGET} ...]: {mail.subject}"


@check()
def changes_since_last_version(series):
    for mail in series.mails[:1]:
        match = re.match(r"\[[^]]* v(\d+)[ \]]", mail.subject)
        if not match or int(match[1]) < 2:
            continue
        new, old = int(match[1]), int(match[1]) - 1
        said = rf"changes (since|in|from) v?\d|changelog|v{old} *(->|to) *v{new}|^v{new}:"
        if not re.search(said, mail.message + mail.notes, re.I | re.M):
            yield mail, f"does not say what has changed since v{old}"


@check()
def no_placeholders(series):
    """what a template leaves behind"""
    left = re.compile(r"\*\*\* .* HERE \*\*\*|\b(TODO|FIXME|XXX|TBD)\b|^([A-Z][A-Za-z-]+-by|Fixes|Link|Closes):\s*$")
    for mail in series.mails:
        lines = [mail.subject, *mail.message.split("\n"), *(line for _, line in mail.added())]
        for line in filter(left.search, lines):
            yield mail, line


@check()
def no_local_paths(series):
    for mail in series.mails:
        for line in (mail.message + mail.notes).split("\n"):
            if re.search(r"(^|[\s(\"'])(/home/|/root/|~/)", line):
                yield mail, line


@check()
def base_is_named(series):
    cover = series.cover
    if cover and not re.search(r"^base-commit: [0-9a-f]{40}$|^Base$", cover.message + cover.notes, re.M):
        yield cover, 'neither base-commit: nor a section "Base"'


# ---- each message ----


@check()
def subject_form(series):
    """"subsystem: what it does", in one line"""
    for mail in series.mails:
        if len(mail.title) > MAX_COLUMNS and not mail.is_cover:
            yield mail, f"subject of {len(mail.title)} columns"
        if not re.match(r"[A-Za-z0-9][\w/.,-]*(: [a-z0-9_/.-]+)*: \S", mail.title):
            yield mail, f'no "subsystem: " in front: {mail.title}'
        if mail.title.endswith("."):
            yield mail, f"full stop at the end: {mail.title}"


@check()
def no_fixups(series):
    for mail in series.patches:
        if re.search(r"\b(fixup|squash|amend)!", mail.subject):
            yield mail, mail.subject


@check()
def message_says_why(series):
    for mail in series.patches:
        lines = [line for line in mail.message.split("\n") if line and not TRAILER.fullmatch(line)]
        if len(lines) < 2:
            yield mail, f"a message of {len(lines)} lines"


@check()
def message_width(series):
    """what is set in (tables, quoted output), trailers and links may be wider"""
    for mail in series.mails:
        limit = MAX_COVER_COLUMNS if mail.is_cover else MAX_COLUMNS
        for line in mail.message.split("\n"):
            if len(line) > limit and not re.match(r"\s|[A-Z][A-Za-z-]+: ", line) and "://" not in line:
                yield mail, f"{len(line)} columns: {line}"


@check("submitter")
def signed_off_by_submitter(series):
    for mail in series.patches:
        if not any(same_person(value, series.submitter) for _, value in mail.trailers("Signed-off-by")):
            yield mail, f"no Signed-off-by: {series.submitter}"


@check("submitter")
def sign_off_is_last(series):
    """whoever hands a patch on signs below all that came before"""
    for mail in series.patches:
        last = mail.message.rstrip().rpartition("\n")[2]
        if not last.startswith("Signed-off-by: "):
            yield mail, f"the last line is no sign-off: {last}"


@check("submitter")
def signed_off_by_author(series):
    for mail in series.patches:
        if not any(same_person(value, mail.author) for _, value in mail.trailers("Signed-off-by")):
            yield mail, f"no sign-off of its author {mail.author}; next: theirs, or REAUTHOR=1 if the submitter is to be the author"


@check("submitter")
def addresses_are_real(series):
    """a list server and a reviewer can reach them"""
    unreal = re.compile(r"[@.](example|invalid|localhost|localdomain|test)$|@example\.(com|net|org)$|no-?reply", re.I)
    for mail in series.mails:
        people = [mail.author, *(value for name, value in mail.trailers() if name.endswith("-by") and "@" in value)]
        for person in people + sorted(mail.recipients):
            if unreal.search(email.utils.parseaddr(person)[1]):
                yield mail, person


@check()
def says_who_assisted(series):
    for mail in series.patches:
        if not mail.trailers("Assisted-by"):
            yield mail, "no Assisted-by:"


@check()
def no_fixes_without_reason(series):
    """a fix belongs in net, unless what it fixes is in net-next only"""
    for mail in series.patches if TARGET == "net-next" else []:
        if mail.trailers("Fixes") and "net-next" not in mail.message + mail.notes:
            yield mail, "has Fixes:, and does not say why it is for net-next"


@check()
def fixes_are_well_formed(series):
    for mail in series.patches:
        for line in re.findall(r"^Fixes:.*", mail.message, re.M):
            if not re.fullmatch(r'Fixes: [0-9a-f]{12,40} \(".+"\)', line):
                yield mail, f"not 'Fixes: <12 digits or more> (\"subject\")': {line}"


@check()
def not_for_stable(series):
    for mail in series.patches:
        if re.search(r"stable@(vger\.)?kernel\.org", mail.message + " ".join(mail.recipients), re.I):
            yield mail, f"Cc: stable, for {TARGET}"


# ---- each diff ----


@check()
def whitespace(series):
    for mail in series.patches:
        for file, line in mail.added():
            if re.search(r"[ \t\r]$", line):
                yield mail, f"{file}: white space at the end: {line}"
            if re.match(r"\t* +\t", line):
                yield mail, f"{file}: space before a tab: {line}"
        for line in re.findall(r"^\+(.*)\n\\ No newline", mail.diff, re.M):
            yield mail, f"no newline at the end: {line}"


@check()
def header_guards(series):
    """a new header can be included twice"""
    for mail in series.patches:
        for part in re.split(r"^(?=diff --git )", mail.diff, flags=re.M):
            name = re.match(r"diff --git a/\S+ b/(\S+\.h)\nnew file mode", part)
            if name and not re.search(r"^\+#ifndef (\w+)\n\+#define \1$|^\+#pragma once", part, re.M):
                yield mail, f"{name[1]}: no header guard"


@check()
def no_inline_in_c(series):
    """the compiler knows better"""
    for mail in series.patches:
        for file, line in mail.added(r"\.c$"):
            if re.match(r"([^/*\"]*\s)?(__always_)?inline\s", line):
                yield mail, f"{file}: {line}"


@check()
def only_inline_functions_in_headers(series):
    for mail in series.patches:
        for file, line in mail.added(r"\.h$"):
            if re.match(r"static\s[^=;]*\(", line) and not re.search(r"\b(__always_)?inline\b", line):
                yield mail, f"{file}: {line}"


@check()
def no_discouraged_api(series):
    """netdev_hold() and netdev_put() for devices, no cleanup.h in drivers, no
    module parameters"""
    for mail in series.patches:
        for file, line in mail.added():
            if KERNEL_CODE.match(file) and re.search(r"\b(dev_hold|dev_put|module_param\w*|__free)\(", line):
                yield mail, f"{file}: {line}"


@check()
def tests_on_their_own(series):
    """selftests go into the same series, but not into the same patch"""
    for mail in series.patches:
        files = mail.files()
        if any(file.startswith("tools/testing/") for file in files) and any(map(KERNEL_CODE.match, files)):
            yield mail, "kernel code and selftests in one patch"


# ---- recipients ----


@check("maintainers")
def cc_maintainers(series):
    """whom get_maintainer.pl names gets it, and the cover letter goes to all"""
    for mail in series.mails:
        wanted = series.maintainers.get(mail.name, set())
        if mail.is_cover:
            wanted = set().union(*series.maintainers.values())
        missing = wanted - mail.recipients
        if missing:
            yield mail, f"not in To or Cc: {' '.join(sorted(missing))}"
        if not wanted and series.patches:
            yield mail, "get_maintainer.pl named nobody"


def run(series):
    """run the checks that can be run; (name, [what is wrong]) for each"""
    for function in CHECKS:
        if function.needs and getattr(series, function.needs) is None:
            continue
        found = [f"{mail.name}: {text}" if mail else text for mail, text in function(series)]
        yield function.__name__, found


def read_maintainers(path):
    """mail name -> addresses"""
    result = {}
    with open(path, encoding="utf-8") as file:
        for line in file:
            name, address = line.rstrip("\n").split("\t")
            result.setdefault(name, set()).add(address.lower())
    return result


def main():
    parser = argparse.ArgumentParser(usage=__doc__[len("usage: "):], add_help=False)
    parser.add_argument("-h", "--help", action="store_true")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--submitter")
    parser.add_argument("--maintainers")
    parser.add_argument("dir", nargs="?")
    args = parser.parse_args()
    if args.help:
        print(__doc__)
        return 0
    if args.list:
        print("\n".join(function.__name__ for function in CHECKS))
        return 0
    if not args.dir:
        parser.error("which directory?")
    maintainers = read_maintainers(args.maintainers) if args.maintainers else None
    bad = False
    for name, found in run(Series(args.dir, args.submitter, maintainers)):
        print(f"{'not ' if found else ''}ok {name}")
        for line in found:
            print(f"# {line}")
        bad = bad or bool(found)
    print("end")
    return int(bad)


if __name__ == "__main__":
    sys.exit(main())
