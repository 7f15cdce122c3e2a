"""The check of docs/handover.md must fail for a field without a row and a row without a field."""

import contextlib
import io
import pathlib
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import check_restart  # noqa: E402

STATE = """
struct State {
  State(int options, std::uint64_t bytes);
  [[nodiscard]] Pool& PoolAt(quota::PoolId id) const;
  const int options;
  Owned<SessionTable, SessionDesk> sessions;  // not in the page: Owned<X, Y> z;
  Owned<std::optional<absl::Time>, OperatorDesk> drain_until;
};
"""
TABLE = """
class SessionTable {
 public:
  static constexpr size_t kMost = size_t{32} << 10;
  [[nodiscard]] size_t size() const { return sessions_.size(); }
 private:
  enum class Fate : uint8_t { kLive, kDead };
  struct Seat {
    uint64_t place = 0;
    std::function<void(int)> done = nullptr;
    std::vector<int> rooms = {};
    friend bool operator==(const Seat&, const Seat&) = default;
  };
  absl::btree_map<uint64_t, Seat> sessions_;
  Fate fate_{Fate::kLive};
};
"""
PAGE = """# Handover
### `State`
| field | fate | how | what a client notices |
| --- | --- | --- | --- |
| `options` | configured | read anew | – |
| `sessions` | parts | see below | – |
| `drain_until` | dropped | forgotten | nothing |
### `SessionTable`
| `sessions_` | parts | see below | – |
| `fate_` | journaled | the record | – |
### `SessionTable::Seat`
| `place` | journaled | the record | – |
| `done` | dropped | the call is gone | an error |
| `rooms` | fd | in the keeper | – |
## The end
| `other` | table | of four | cells |
"""


class CheckRestartTest(unittest.TestCase):

    def check(self, page=PAGE, state=STATE, table=TABLE):
        with tempfile.TemporaryDirectory() as root:
            for path, text in (("broker/machine/state.h", state),
                               ("broker/machine/session_table.h", table),
                               (check_restart.PAGE, page)):
                file = pathlib.Path(root, path)
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text)
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                status = check_restart.main(["--root", root])
            return status, out.getvalue()

    def assert_fault(self, said, **trees):
        status, out = self.check(**trees)
        self.assertEqual(status, 1, out)
        self.assertIn(said, out)

    def without(self, row):
        lines = [line for line in PAGE.splitlines(True) if f"`{row}`" not in line]
        self.assertEqual(len(lines), len(PAGE.splitlines()) - 1)
        return "".join(lines)

    def test_the_page_of_this_project_is_complete(self):
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            status = check_restart.main(["--root", str(ROOT)])
        self.assertEqual(status, 0, out.getvalue())

    def test_every_field_of_this_project_that_the_owners_check_knows_is_seen(self):
        import check_owners
        records = check_restart.all_records(ROOT)
        for struct, field, _ in check_owners.owned_fields(ROOT / check_owners.MACHINE):
            self.assertIn(field, [name for _, name in records[struct]], struct)

    def test_a_complete_page_passes(self):
        self.assertEqual(self.check()[0], 0, self.check()[1])

    def test_a_field_needs_a_row(self):
        for row in ("options", "drain_until", "fate_", "place", "done", "rooms"):
            self.assert_fault(f"no row for the field {row}", page=self.without(row))

    def test_a_new_field_needs_a_row(self):
        self.assert_fault("State: no row for the field news",
                          state=STATE.replace("const int options;", "const int options;\n  Owned<X, Y> news;"))
        self.assert_fault("SessionTable::Seat: no row for the field more",
                          table=TABLE.replace("uint64_t place = 0;", "uint64_t place = 0;\n  bool more{true};"))

    def test_a_row_needs_a_field(self):
        self.assert_fault("a row for fate_, which is no field", table=TABLE.replace("Fate fate_{Fate::kLive};", ""))

    def test_a_record_in_a_field_needs_a_section(self):
        self.assert_fault("no section for the record SessionTable::Seat", page=self.without("SessionTable::Seat")
                          .replace("| `place`", "| `place_`"))
        self.assert_fault('write "parts"', page=PAGE.replace("| `sessions_` | parts |", "| `sessions_` | journaled |"))

    def test_a_row_says_what_a_client_notices(self):
        self.assert_fault("what does a client notice?", page=PAGE.replace("| forgotten | nothing |", "| forgotten | – |"))

    def test_a_fate_is_one_of_the_page(self):
        self.assert_fault('"lost" is none of', page=PAGE.replace("| dropped | forgotten", "| lost | forgotten"))

    def test_no_field_has_two_rows(self):
        self.assert_fault("two rows", page=PAGE.replace("### `SessionTable`\n", "| `options` | configured | x y | – |\n"
                                                        "### `SessionTable`\n"))

    def test_a_missing_page_is_a_fault(self):
        self.assert_fault("no section for the record State", page="")


if __name__ == "__main__":
    unittest.main()
