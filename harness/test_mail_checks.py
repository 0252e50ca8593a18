#!/usr/bin/python3
"""usage: test_mail_checks.py

Each check of mail_checks.py must pass a good series and refuse one that is broken
in just what it looks at, and no other check may. Prints "ok NAME" or "not ok NAME"
for each case, and "end" at the end; a check without a case is a failure."""

import os
import sys
import tempfile

import mail_checks

SUBMITTER = "Ada Lovelace <ada@analytical.org>"
MAINTAINER = "netdev@vger.kernel.org"
TRAILERS = f"Assisted-by: LLM [tools]\nSigned-off-by: {SUBMITTER}\n"

COVER = f"""\
From 0000000000000000000000000000000000000000 Mon Sep 17 00:00:00 2001
From: {SUBMITTER}
Date: Tue, 1 Dec 2026 07:00:00 +0000
Subject: [PATCH net-next 0/3] ovpn: send faster
Cc: {MAINTAINER},
\tone@kernel.org

What and why.

Base
====

net-next.

Ada Lovelace (3):
  ovpn: add a helper
-- \n"""

PATCH = """\
From 0000000000000000000000000000000000000000 Mon Sep 17 00:00:00 2001
From: {author}
Date: Tue, 1 Dec 2026 07:00:00 +0000
Subject: [PATCH net-next {number}/3] {title}
To: one@kernel.org
Cc: {list}

There is a problem, and it costs something.

Solve it. This has a downside.

{trailers}---
 file | 3 +++

diff --git a/{file} b/{file}
new file mode 100644
--- /dev/null
+++ b/{file}
@@ -0,0 +1,{count} @@
{lines}"""


def patch(number, title, file, *lines):
    """a mail that adds a file"""
    return PATCH.format(
        author=SUBMITTER, number=number, title=title, list=MAINTAINER, trailers=TRAILERS, file=file,
        count=len(lines), lines="".join(f"+{line}\n" for line in lines),
    )


def good():
    """name -> mail"""
    return {
        "0000-cover-letter.patch": COVER,
        "0001-a.patch": patch(
            1, "ovpn: add a helper", "drivers/net/ovpn/new.h", "#ifndef _NEW_H_", "#define _NEW_H_",
            "static inline int ovpn_new(void)", "{", "\treturn 0;", "}", "#endif",
        ),
        "0002-b.patch": patch(2, "ovpn: use it", "drivers/net/ovpn/new.c", "int ovpn_use(void)", "{", "\treturn ovpn_new();", "}"),
        "0003-c.patch": patch(3, "selftests: ovpn: test it", "tools/testing/selftests/net/ovpn/test-new.sh", "#!/bin/bash", "exit 0"),
    }


def edit(mail, old, new):
    """a breaker that replaces text in one mail, or in all"""

    def breaker(mails):
        for name in mails if mail is None else [mail]:
            mails[name] = mails[name].replace(old, new)

    return breaker


def without(name):
    """a breaker that takes a mail away"""
    return lambda mails: mails.pop(name)


def add_line(line):
    """a breaker that adds a line to the .c file"""
    return edit("0002-b.patch", "@@ -0,0 +1,4 @@\n", f"@@ -0,0 +1,5 @@\n+{line}\n")


def add_text(text):
    """a breaker that adds a paragraph to a message"""
    return edit("0002-b.patch", "Solve it.", f"{text}\n\nSolve it.")


def trailer(text):
    """a breaker that puts a trailer in front of the others"""
    return edit("0002-b.patch", "Assisted-by:", f"{text}\nAssisted-by:")


def sixteen(mails):
    """16 patches, numbered as they should be"""
    for name in list(mails):
        mails[name] = mails[name].replace("/3]", "/16]")
    for number in range(4, 17):
        mails[f"{number:04}-d.patch"] = patch(number, "ovpn: more", f"drivers/net/ovpn/more{number}.c", "int i;").replace("/3]", "/16]")


def one_patch(mails):
    """a single patch needs neither a number nor a cover letter"""
    for name in list(mails)[:1] + list(mails)[2:]:
        del mails[name]
    mails["0001-a.patch"] = mails["0001-a.patch"].replace("net-next 1/3]", "net-next]")


B = "0002-b.patch"
# what must still be taken
FINE = {
    "a good series": lambda mails: None,
    "a single patch": one_patch,
    "RFC": edit(None, "[PATCH net-next", "[PATCH RFC net-next"),
    "version 2 that says what is new": lambda mails: [
        edit(None, "net-next ", "net-next v2 ")(mails), edit("0000-cover-letter.patch", "What and why.", "Changes since v1:\n - none")(mails)],
    "a wide table": add_text("  " + "column " * 12),
    "a link in a wide line": add_text("see https://lore.kernel.org/" + "x" * 60),
    "an encoded name in two lines": edit(None, f"From: {SUBMITTER}", "From: =?UTF-8?q?Ada_Lovelace?=\n <ada@analytical.org>"),
    "an em dash at the width of a line": add_text("\u2014" * 75),
    "Fixes: with a reason": lambda mails: [
        trailer('Fixes: 0123456789ab ("ovpn: be slow")')(mails), add_text("What this fixes is in net-next only.")(mails)],
    "mktemp": add_line('x = "/tmp/a.XXXXXX";'),
}
# (check that must refuse it, what is wrong, breaker)
BROKEN = [
    ("has_patches", "cover letter only", lambda mails: [mails.pop(name) for name in list(mails)[1:]] and edit(None, "0/3]", "0/0]")(mails)),
    ("at_most_15_patches", "16 patches", sixteen),
    ("cover_letter", "none", without("0000-cover-letter.patch")),
    ("numbered", "one missing", without(B)),
    ("numbered", "total is wrong", edit(B, "2/3]", "2/4]")),
    ("numbered", "number is missing", edit(B, " 2/3]", "]")),
    ("numbered", "another version", edit(B, "net-next 2/3", "net-next v2 2/3")),
    ("subject_prefix", "no tree", edit(None, "[PATCH net-next", "[PATCH")),
    ("subject_prefix", "another tree", edit(None, "[PATCH net-next", "[PATCH bpf-next")),
    ("changes_since_last_version", "version 2", edit(None, "net-next ", "net-next v2 ")),
    ("no_placeholders", "subject of the template", edit("0000-cover-letter.patch", "ovpn: send faster", "ovpn: *** SUBJECT HERE ***")),
    ("no_placeholders", "text of the template", edit("0000-cover-letter.patch", "What and why.", "*** BLURB HERE ***")),
    ("no_placeholders", "to do, in the message", add_text("TODO: say why.")),
    ("no_placeholders", "to do, in the code", add_line("/* XXX: leaks */")),
    ("no_placeholders", "empty tag", add_text("Reviewed-by:")),
    ("no_local_paths", "in the message", add_text("See /home/ada/notes for the figures.")),
    ("base_is_named", "no base", edit("0000-cover-letter.patch", "Base\n====", "Thanks\n======")),
    ("subject_form", "no subsystem", edit(B, "ovpn: use it", "Use it")),
    ("subject_form", "full stop", edit(B, "ovpn: use it", "ovpn: use it.")),
    ("subject_form", "too long", edit(B, "ovpn: use it", "ovpn: " + "use it " * 11)),
    ("no_fixups", "fixup", edit(B, "ovpn: use it", "fixup! ovpn: use it")),
    ("message_says_why", "no message", edit(B, "There is a problem, and it costs something.\n\nSolve it. This has a downside.\n\n", "")),
    ("message_width", "76 columns", add_text("wide " * 15 + "x")),
    ("message_width", "81 columns in the cover letter", edit("0000-cover-letter.patch", "What and why.", "why? " * 16 + "x")),
    ("signed_off_by_submitter", "somebody else", lambda mails: [
        edit(None, f"Signed-off-by: {SUBMITTER}", "Signed-off-by: B B <b@kernel.org>")(mails),
        edit(None, f"From: {SUBMITTER}", "From: B B <b@kernel.org>")(mails)]),
    ("sign_off_is_last", "a tag below it", edit(B, f"{TRAILERS}", f"Signed-off-by: {SUBMITTER}\nAssisted-by: LLM [tools]\n")),
    ("signed_off_by_author", "another author", edit(B, f"From: {SUBMITTER}", "From: B B <b@kernel.org>")),
    ("signed_off_by_author", "another address", edit(B, f"From: {SUBMITTER}", "From: Ada Lovelace <ada@kernel.org>")),
    ("addresses_are_real", "author", lambda mails: [
        edit(B, f"From: {SUBMITTER}", "From: B B <b@kernel.example>")(mails), trailer("Signed-off-by: B B <b@kernel.example>")(mails)]),
    ("addresses_are_real", "tag", trailer("Reported-by: Bug <bug@localhost>")),
    ("addresses_are_real", "recipient", edit(B, "Cc: ", "Cc: a@example.org, ")),
    ("says_who_assisted", "no tag", edit(B, "Assisted-by: LLM [tools]\n", "")),
    ("no_fixes_without_reason", "Fixes:", trailer('Fixes: 0123456789ab ("ovpn: be slow")')),
    ("fixes_are_well_formed", "short hash", lambda mails: [
        trailer('Fixes: 0123456 ("ovpn: be slow")')(mails), add_text("What this fixes is in net-next only.")(mails)]),
    ("not_for_stable", "tag", trailer("Cc: stable@vger.kernel.org")),
    ("not_for_stable", "header", edit(B, "Cc: ", "Cc: stable@vger.kernel.org, ")),
    ("whitespace", "at the end", add_line("int a; ")),
    ("whitespace", "space before a tab", add_line(" \tint a;")),
    ("whitespace", "carriage return", add_line("int a;\r")),
    ("whitespace", "no newline at the end", lambda mails: mails.update({B: mails[B] + "\\ No newline at end of file\n"})),
    ("header_guards", "none", edit("0001-a.patch", "+#ifndef _NEW_H_\n+#define _NEW_H_\n", "+#if 1\n+\n")),
    ("header_guards", "two names", edit("0001-a.patch", "#define _NEW_H_", "#define _NEW_H")),
    ("no_inline_in_c", "static inline", add_line("static inline int a(void)")),
    ("no_inline_in_c", "__always_inline", add_line("static __always_inline int a(void)")),
    ("only_inline_functions_in_headers", "static function", edit("0001-a.patch", "static inline int", "static int")),
    ("no_discouraged_api", "dev_hold()", add_line("\tdev_hold(dev);")),
    ("no_discouraged_api", "module_param()", add_line("module_param(batch, bool, 0);")),
    ("no_discouraged_api", "__free()", add_line("\tvoid *tmp __free(kfree) = NULL;")),
    ("tests_on_their_own", "code and test", lambda mails: mails.update({B: mails[B] + mails["0003-c.patch"][mails["0003-c.patch"].index("diff --git"):]})),
    ("cc_maintainers", "a patch", edit(B, f"Cc: {MAINTAINER}", "Cc: two@kernel.org")),
    ("cc_maintainers", "the cover letter", edit("0000-cover-letter.patch", f"Cc: {MAINTAINER},\n\tone@kernel.org", f"Cc: {MAINTAINER}")),
]


def refused(mails):
    """name of each check that refuses the mails -> what it says"""
    with tempfile.TemporaryDirectory() as directory:
        for name, text in mails.items():
            with open(os.path.join(directory, name), "w", encoding="utf-8", newline="") as file:
                file.write(text)
        maintainers = {name: {MAINTAINER, "one@kernel.org"} for name in mails if not name.startswith("0000")}
        series = mail_checks.Series(directory, SUBMITTER, maintainers)
        return {name: found for name, found in mail_checks.run(series) if found}


def verdict(name, wrong):
    print(f"{'not ' if wrong else ''}ok {name}")
    for line in wrong:
        print(f"# {line}")
    return bool(wrong)


def main():
    bad = False
    for title, change in FINE.items():
        mails = good()
        change(mails)
        wrong = [f"{name}: {text}" for name, found in refused(mails).items() for text in found]
        if title != "a good series" and mails == good():
            wrong.append("the case changes nothing")
        bad |= verdict(f"passes: {title}", wrong)
    for name, title, breaker in BROKEN:
        mails = good()
        breaker(mails)
        found = refused(mails)
        wrong = [] if name in found else ["is not refused"]
        wrong += [f"{other} refuses it too: {text}" for other in found if other != name for text in found[other]]
        if mails == good():
            wrong.append("the case changes nothing")
        bad |= verdict(f"{name} refuses: {title}", wrong)
    tested = {name for name, _, _ in BROKEN}
    bad |= verdict("each check has a case", sorted({function.__name__ for function in mail_checks.CHECKS} - tested))
    print("end")
    return int(bad)


if __name__ == "__main__":
    sys.exit(main())
