"""docs/operations.md lists every event of the broker, and no other."""

import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]


def published():
    """The words that the broker's sources publish, and those that they log."""
    events, logged = set(), set()
    for file in (ROOT / "broker").rglob("*.cc"):
        text = file.read_text()
        # The kind is the argument after the state; "a ? b : c" has two.
        for argument in re.findall(
                r"\b(?:NewEvent|LeaseEvent|PublishMove|PublishAttached)\(\s*(?:state_?,\s*)?([^,]*),", text):
            events |= set(re.findall(r'"([a-z_]+)"', argument))
        events |= set(re.findall(r'\bset_kind\(\s*"([a-z_]+)"', text))
        for argument in re.findall(r"\bLog(?:Client)?Event\(\s*LogLevel::\w+,\s*([^,){]*)", text):
            logged |= set(re.findall(r'"([a-z_]+)"', argument))
    return events, logged


def listed():
    section = (ROOT / "docs" / "operations.md").read_text().split("### Events\n")[1].split("\n## ")[0]
    tables = section.split("In the log alone:")
    return [set(re.findall(r"`([a-z_]+)`", "\n".join(re.findall(r"^\|([^|]*)\|", table, re.M))))
            for table in tables]


def alarms():
    text = (ROOT / "docs" / "operations.md").read_text()
    return set(re.findall(r"`([a-z_]+)`", re.search(r"Worth an alarm:([^.]*)\.", text).group(1)))


def loud():
    """The words that are logged as a warning or an error."""
    words = set()
    for file in (ROOT / "broker").rglob("*.cc"):
        for argument in re.findall(r"\bLogEvent\(\s*LogLevel::k(?:Warning|Error),\s*([^,){]*)",
                                   file.read_text()):
            words |= set(re.findall(r'"([a-z_]+)"', argument))
    event_log = (ROOT / "broker" / "daemon" / "event_log.cc").read_text()
    return words | set(re.findall(r'"([a-z_]+)"', re.search(r"kAlarms\[\] = \{([^}]*)\}", event_log).group(1)))


class EventsTest(unittest.TestCase):

    def test_every_event_is_listed_and_every_listed_one_exists(self):
        events, logged = published()
        self.assertIn("pool_draining", events)
        self.assertIn("serving", logged)
        in_watch, in_log = listed()
        self.assertEqual(in_watch, events)
        self.assertEqual(in_log, logged)

    def test_the_command_knows_them_too(self):
        source = (ROOT / "client" / "cli" / "views" / "event_kinds.cc").read_text()
        known = re.findall(r'"([a-z_]+)"', source)
        self.assertEqual(known, sorted(listed()[0]))

    def test_what_is_worth_an_alarm_is_logged_as_one(self):
        self.assertIn("terminated", alarms())
        self.assertEqual(alarms() - loud(), set())


if __name__ == "__main__":
    unittest.main()
