"""Makes certificates for the page in separate processes, with a time limit.

Where the conditions fail, `certify` searches for an error, which takes half a minute if there is
none. A thread could not be stopped, and would take its turns from those that draw.

    python -m exactformer.explorer.certifier DESCRIPTOR SERVER     is such a process
"""

import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection
from socket import socketpair
from threading import BoundedSemaphore
from typing import Any

from exactformer.training.workers import end_with
from exactformer.weights.file import WeightFile

MOST_SECONDS = 30  # for a certificate
AT_ONCE = 2  # processes


Shown = dict[str, Any]  # of a certificate: JSON for the page
Certify = Callable[[WeightFile], Shown]


class NoCertificate(Exception):
    """Raised if the process could not be started, or ended while it was at work."""


def certificate_of(file: WeightFile) -> Shown:
    """The certificate of a weights file, computed in this process without a time limit. The algebra
    is left out, since the page has it.
    """
    # They need torch, which takes a second: the process watches its server before that.
    from exactformer.certify import certify
    from exactformer.model.storage import from_file

    certificate = certify(file.domain, from_file(file)).to_dict()
    certificate.pop("algebra", None)
    return certificate


class Worker:
    def __init__(self) -> None:
        ours, theirs = socketpair()
        try:
            self.process = subprocess.Popen(
                [sys.executable, "-P", "-m", __name__, str(theirs.fileno()), str(os.getpid())],
                pass_fds=[theirs.fileno()],
                env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
                start_new_session=True,  # an interrupt from the terminal is for the server alone
            )
        except OSError:
            ours.close()
            raise
        finally:
            theirs.close()
        self.pipe: Connection[WeightFile, Shown] = Connection(ours.detach())


class Certifier:
    """Certificates are made side by side, each in a process to itself. Processes that are done are
    kept for the next: it takes a second to start one.
    """

    def __init__(self) -> None:
        self.workers: set[Worker] = set()
        self.idle: list[Worker] = []
        self.vacancies = BoundedSemaphore(AT_ONCE)
        self.stopped = False

    def __call__(self, file: WeightFile) -> Shown:
        with self.vacancies:
            worker = self._worker()
            try:
                worker.pipe.send(file)
                if worker.pipe.poll(MOST_SECONDS):
                    found = worker.pipe.recv()
                    self.idle.append(worker)
                    return found
            except (EOFError, OSError):
                self._end(worker)
                raise NoCertificate("the process that certifies was ended; ask again") from None
            self._end(worker)
            return {"verdict": "unfinished", "seconds": MOST_SECONDS}

    def stop(self) -> None:
        """Stop all workers, from another thread: whoever waits for a certificate gets
        NoCertificate.
        """
        self.stopped = True
        for worker in list(self.workers):
            worker.process.kill()

    def _worker(self) -> Worker:
        try:
            worker = self.idle.pop() if self.idle else Worker()
        except OSError as error:
            raise NoCertificate(f"cannot certify now: {error.strerror}; ask again") from None
        self.workers.add(worker)
        if self.stopped:
            worker.process.kill()
        return worker

    def _end(self, worker: Worker) -> None:
        self.workers.discard(worker)
        worker.process.kill()
        worker.process.wait()
        worker.pipe.close()


if __name__ == "__main__":
    end_with(int(sys.argv[2]))
    with Connection(int(sys.argv[1])) as pipe, suppress(EOFError, OSError):  # the server hung up
        while True:
            pipe.send(certificate_of(pipe.recv()))
