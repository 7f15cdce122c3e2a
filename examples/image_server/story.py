"""The steps that every form of the image server goes through, and what is seen after each."""

import dataclasses
import http.client
import json

from local_broker import Problem, mib


@dataclasses.dataclass
class Outcome:
    form: str
    good: bool = True
    checksum: object = None
    cached_bytes: int = 0  # what the server kept of its large batch
    came_back_bytes: int = 0  # of that, when a neighbour asked for memory

    def check(self, holds, what):
        print(f"  {'PASS' if holds else 'FAIL'}  {what}", flush=True)
        self.good = self.good and holds


def call(port, method, path, body=None):
    """The server's answer, as JSON."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    try:
        connection.request(method, path, None if body is None else json.dumps(body))
        response = connection.getresponse()
        answer = json.loads(response.read())
    except OSError as error:
        raise Problem(f"the server does not answer: {error}") from None
    finally:
        connection.close()
    if response.status != 200:
        raise Problem(f"the server answers {response.status}: {answer['error']}")
    return answer


class Table:
    """A line for each step."""

    def __init__(self, stage):
        self._stage = stage
        print(f"  {'step':<46} {'server holds':>13} {'free':>13}")

    def row(self, step, note=""):
        held, free = self._stage.held_bytes(), self._stage.free_bytes()
        print(f"  {step:<46} {mib(held):>13} {mib(free):>13}  {note}".rstrip(), flush=True)
        return held, free


def noted(answer):
    back = f", was away, back after {answer['wait_ms']:.0f} ms" if answer["met_evicted"] else ""
    return f"checksum {answer['sum']}{back}"


def tell(form, stage):
    print(f"\n{form.name}: {form.about}", flush=True)
    outcome, table = Outcome(form.name), Table(stage)
    loaded, _ = table.row("the model is loaded")
    first = stage.infer(4)
    table.row("a batch of four", noted(first))
    for _ in range(3):
        single = stage.infer(1)
    held, free = table.row("three single images", noted(single))
    outcome.checksum, outcome.cached_bytes = first["sum"], held - loaded
    asked_bytes = free + outcome.cached_bytes // 2

    with stage.neighbour(asked_bytes) as neighbour:
        kept, _ = table.row(f"a neighbour asks for {mib(asked_bytes)}", neighbour.said)
        outcome.came_back_bytes = held - kept
        outcome.check(neighbour.got == form.gives_back, form.promise)
        if neighbour.got:
            outcome.check(stage.infer(1)["sum"] == single["sum"],
                          "a single image beside the neighbour is the same")
    if form.gives_back:
        evicted(stage, table, outcome)
    else:
        stage.empty_cache()
        table.row("the program itself calls empty_cache()")
        with stage.neighbour(asked_bytes) as neighbour:
            table.row(f"a neighbour asks for {mib(asked_bytes)}", neighbour.said)
            outcome.check(neighbour.got, "only then the neighbour gets it")
    table.row("the neighbour has left")
    again = stage.infer(4)
    table.row("a batch of four", noted(again))
    outcome.check(again["sum"] == first["sum"], "the next large batch works, with the same result")
    return outcome


def evicted(stage, table, outcome):
    nearly_all = stage.pool_bytes * 31 // 32
    with stage.neighbour(nearly_all) as neighbour:
        table.row(f"a neighbour asks for {mib(nearly_all)}", neighbour.said)
        outcome.check(neighbour.got, "an idle server lends its weights, too")
