#!/usr/bin/python3
"""usage: smtp-sink.py DIR

A mail server on a free port of 127.0.0.1 that keeps what it is given and passes
nothing on: DIR/1.eml, DIR/2.eml, ... with the recipients of the envelope in
DIR/1.to, ... Prints its port, and ends when its standard input does."""

import os
import socketserver
import sys
import threading


class Session(socketserver.StreamRequestHandler):
    """as much of RFC 5321 as a client needs to hand mails over"""

    def reply(self, text):
        self.wfile.write(text.encode() + b"\r\n")

    def handle(self):
        recipients = []
        self.reply("220 sink")
        for line in self.rfile:
            verb = line[:4].upper()
            if verb == b"RCPT":
                recipients.append(line.decode().partition(":")[2].strip().strip("<>"))
                self.reply("250 OK")
            elif verb == b"DATA":
                self.reply("354 go on")
                self.server.keep(recipients, self.content())
                recipients = []
                self.reply("250 kept")
            elif verb == b"QUIT":
                self.reply("221 bye")
                return
            else:
                self.reply("250 OK")

    def content(self):
        lines = []
        for line in self.rfile:
            if line == b".\r\n":
                break
            lines.append(line[1:] if line.startswith(b".") else line)
        return b"".join(lines).replace(b"\r\n", b"\n")


class Sink(socketserver.TCPServer):
    """keeps mails, numbered as they come"""

    def __init__(self, directory):
        super().__init__(("127.0.0.1", 0), Session)
        self.directory = directory
        self.count = 0

    def keep(self, recipients, content):
        self.count += 1
        name = os.path.join(self.directory, str(self.count))
        with open(name + ".eml", "wb") as file:
            file.write(content)
        with open(name + ".to", "w", encoding="utf-8") as file:
            file.write("".join(f"{address}\n" for address in recipients))


def main():
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        print(__doc__)
        return int(sys.argv[1:2] not in (["-h"], ["--help"]))
    os.makedirs(sys.argv[1], exist_ok=True)
    with Sink(sys.argv[1]) as sink:
        threading.Thread(target=sink.serve_forever, daemon=True).start()
        print(sink.server_address[1], flush=True)
        sys.stdin.read()
        sink.shutdown()
    return 0


if __name__ == "__main__":
    sys.exit(main())
