"""The layering check must fail for a bad tree and pass for a good one."""

import contextlib
import io
import pathlib
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import check_layering  # noqa: E402


class CheckLayeringTest(unittest.TestCase):

    def check(self, files):
        """The exit status and output for a tree of {path: includes or text}."""
        with tempfile.TemporaryDirectory() as root:
            for path, text in files.items():
                file = pathlib.Path(root, path)
                file.parent.mkdir(parents=True, exist_ok=True)
                if isinstance(text, list):
                    text = "".join(f"#include {header}\n" for header in text)
                file.write_text(text)
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                status = check_layering.main(["--root", root])
            return status, out.getvalue()

    def assert_fault(self, path, header, said):
        status, out = self.check({path: ["<vector>", header]})
        self.assertEqual(status, 1, out)
        self.assertIn(f"{path}:2: ", out)
        self.assertIn(said, out)

    def assert_fine(self, path, *headers):
        status, out = self.check({path: list(headers)})
        self.assertEqual(status, 0, out)

    def test_the_tree_of_this_project_passes(self):
        with contextlib.redirect_stdout(io.StringIO()) as out:
            status = check_layering.main(["--root", str(ROOT)])
        self.assertEqual(status, 0, out.getvalue())

    def test_an_empty_tree_is_a_mistake_not_a_pass(self):
        self.assertEqual(self.check({"README.md": "nothing"})[0], 1)

    def test_the_arrows_of_the_design_are_allowed(self):
        self.assert_fine("broker/core.cc", '"quota/engine.h"', '"device/allocator.h"', '"ipc/mutex.h"',
                         '"gmb/v1/session.pb.h"', '"proto/text.h"', "<thread>")
        self.assert_fine("client/client.cc", '"gmb/client.h"', '"device/mapper.h"', '"device/handle.h"',
                         '"ipc/socket.h"', '"gmb/v1/session.grpc.pb.h"')
        self.assert_fine("client/cli/main.cc", '"gmb/client.h"', '"client/cli/views/table.h"',
                         '"gmb/v1/admin.pb.h"', '"CLI/CLI.hpp"', '"nlohmann/json.hpp"')
        self.assert_fine("device/host.cc", '"base/unique_fd.h"', "<sys/mman.h>")
        self.assert_fine("quota/engine.cc", '"quota/ledger.h"', '"absl/status/status.h"', "<map>")
        self.assert_fine("tests/quota/engine_test.cc", '"quota/engine.h"', '"tests/support/x.h"')

    def test_quota_includes_nothing_of_ours(self):
        for header in ('"device/handle.h"', '"ipc/mutex.h"', '"broker/core.h"', '"gmb/v1/types.pb.h"',
                       '"proto/text.h"', '"gmb/client.h"'):
            self.assert_fault("quota/engine.h", header, "quota may not include")

    def test_quota_is_pure(self):
        for header in ("<thread>", "<mutex>", "<iostream>", "<fstream>", "<sys/mman.h>",
                       '"absl/time/clock.h"', '"absl/synchronization/mutex.h"'):
            self.assert_fault("quota/planner.cc", header, "quota is pure")

    def test_quota_is_told_the_time(self):
        self.assert_fine("quota/units.h", "<chrono>")
        for clock in ("std::chrono::steady_clock::now()", "absl::Now()"):
            status, out = self.check({"quota/engine.cc": f"auto now = {clock};\n"})
            self.assertEqual(status, 1, out)
            self.assertIn("quota/engine.cc:1: quota is told the time", out)
        self.assertEqual(self.check({"quota/engine.cc": "int x;  // no absl::Now() here\n"})[0], 0)

    def test_the_machine_is_pure_and_sees_no_worker(self):
        self.assert_fine("broker/machine/state.h", '"quota/engine.h"', '"gmb/v1/session.pb.h"',
                         '"ipc/gate_page.h"', "<sys/types.h>")
        for header in ("<thread>", "<mutex>", "<sys/mman.h>", '"absl/time/clock.h"'):
            self.assert_fault("broker/machine/evict.cc", header, "broker/machine is pure")
        for header in ('"broker/core/outbox.h"', '"device/hostpool/copier.h"', '"ipc/mutex.h"'):
            self.assert_fault("broker/machine/evict.cc", header, "broker/machine may not include")
        self.assert_fault("broker/report/status.cc", '"broker/core/core.h"',
                          "broker/report may not include")

    def test_quota_knows_only_abseil(self):
        self.assert_fault("quota/planner.cc", "<grpcpp/grpcpp.h>", "keeps to Abseil")

    def test_device_sees_one_header_of_ipc(self):
        self.assert_fault("device/host.cc", '"ipc/seqpacket_socket.h"', "device may not include")

    def test_ipc_stands_alone(self):
        self.assert_fault("ipc/frame.cc", '"gmb/v1/handle.pb.h"', "ipc may not include")
        self.assert_fault("ipc/frame.cc", '"device/handle.h"', "ipc may not include")

    def test_the_client_never_sees_broker_quota_or_the_allocator(self):
        for header in ('"broker/core.h"', '"quota/engine.h"', '"device/allocator.h"'):
            self.assert_fault("client/client.cc", header, "client may not include")

    def test_the_keeper_knows_nothing_of_what_it_keeps(self):
        for header in ('"device/handle.h"', '"gmb/v1/types.pb.h"', '"broker/core/keeper.h"', '"quota/units.h"'):
            self.assert_fault("keeper/server.cc", header, "keeper may not include")
        self.assert_fault("keeper/wire/frame.cc", '"ipc/seqpacket.h"', "keeper/wire may not include")
        self.assert_fault("keeper/link/keeper_link.cc", '"keeper/shelf.h"', "keeper/link may not include")
        self.assert_fine("keeper/server.cc", '"ipc/listener.h"', '"keeper/wire/frame.h"', '"base/unique_fd.h"')

    def test_others_see_of_the_keeper_the_side_that_asks(self):
        for user in ("broker/keeping/keeper_client.cc", "client/cli/commands/keeper_command.cc"):
            self.assert_fault(user, '"keeper/server.h"', "may not include")
            self.assert_fine(user, '"keeper/link/keeper_link.h"', '"keeper/wire/messages.h"')
        self.assert_fault("client/client.cc", '"keeper/link/keeper_link.h"', "may not include")
        self.assert_fault("broker/machine/devices.cc", '"keeper/wire/messages.h"', "may not include")

    def test_the_broker_never_sees_the_client(self):
        self.assert_fault("broker/core.cc", '"client/session/session.h"', "broker may not include")
        self.assert_fault("broker/core.cc", '"gmb/client.h"', "broker may not include")

    def test_the_command_line_uses_public_headers_only(self):
        self.assert_fine("client/cli/hold.cc", '"gmb/lease.h"')
        for header in ('"client/session/session.h"', '"ipc/unique_fd.h"', '"device/mapper.h"'):
            self.assert_fault("client/cli/hold.cc", header, "client/cli may not include")

    def test_inside_the_client_arrows_run_one_way(self):
        self.assert_fine("client/session/session.cc", '"client/lease/mover.h"', '"client/gate/gate.h"')
        self.assert_fault("client/lease/mover.cc", '"client/session/calls.h"',
                          "client/lease may not include")
        self.assert_fault("client/gate/gate.cc", '"client/session/calls.h"',
                          "client/gate may not include")
        self.assert_fault("client/session/calls.cc", '"client/heap/heap_core.h"',
                          "client/session may not include")
        self.assert_fault("client/c/c_api.cc", '"client/session/session.h"',
                          "client/c may not include")

    def test_words_and_views_know_no_command(self):
        self.assert_fine("client/cli/views/status_view.cc", '"client/cli/text/text.h"')
        self.assert_fault("client/cli/views/status_view.cc", '"client/cli/commands/commands.h"',
                          "client/cli/views may not include")
        self.assert_fault("client/cli/text/text.cc", '"client/cli/views/table.h"',
                          "client/cli/text may not include")
        self.assert_fault("client/cli/hold/holder.cc", '"client/cli/commands/arguments.h"',
                          "client/cli/hold may not include")

    def test_the_command_has_nothing_of_the_demo(self):
        self.assert_fine("client/cli/demo/demo.cc", '"client/cli/text/text.h"',
                         '"client/cli/demo/stage.h"')
        self.assert_fault("client/cli/commands/demo_command.cc", '"client/cli/demo/demo.h"',
                          "a program of its own")
        self.assert_fine("tests/cli/demo/demo_test.cc", '"client/cli/demo/temp_dir.h"')

    def test_public_headers_include_public_headers_only(self):
        self.assert_fault("client/include/gmb/client.h", '"gmb/v1/types.pb.h"',
                          "client/include may not include")

    def test_nothing_includes_tests_or_bench(self):
        self.assert_fault("broker/core.cc", '"tests/support/fake.h"', "nothing includes from tests/")
        self.assert_fault("device/host.cc", '"bench/timer.h"', "nothing includes from bench/")

    def test_third_party_headers_have_one_home(self):
        for header in ("<sqlite3.h>", "<yaml-cpp/yaml.h>", "<spdlog/spdlog.h>", "<CLI/CLI.hpp>",
                       "<nlohmann/json.hpp>", "<cuda.h>"):
            self.assert_fault("broker/core.cc", header, "only")
        self.assert_fine("broker/store/quota_store.cc", "<sqlite3.h>")

    def test_the_driver_is_declared_in_one_room_for_two(self):
        self.assert_fine("device/cuda/cuda_driver.h", '"device/cuda/abi/driver_api.h"')
        self.assert_fine("client/preload/serve.h", '"device/cuda/abi/driver_api.h"')
        self.assert_fault("broker/core.cc", '"device/cuda/abi/driver_api.h"', "only")
        self.assert_fault("device/cuda/abi/memory.h", '"device/devices.h"', "may not include")
        self.assert_fault("device/cuda/cuda_driver.h", "<cuda.h>", "only")

    def test_relative_includes_are_refused(self):
        self.assert_fault("broker/core.cc", '"../quota/engine.h"', "from the top of the tree")

    def test_long_files_are_a_warning(self):
        status, out = self.check({"ipc/long.cc": "int x;\n" * 401})
        self.assertEqual(status, 0, out)
        self.assertIn("ipc/long.cc: warning: 401 lines", out)


if __name__ == "__main__":
    unittest.main()
