// Calls the application's handlers, on a thread of their own.
#include "client/session/notifier.h"

#include <utility>

#include "client/no_throw.h"

namespace gmb::internal {

Notifier::Notifier(BudgetHandler on_budget_changed, DrainHandler on_draining)
    : state_(std::make_shared<State>(std::move(on_budget_changed),
                                     std::move(on_draining))) {
  if (state_->on_budget_changed != nullptr || state_->on_draining != nullptr) {
    thread_ = std::thread([state = state_] { Run(*state); });
  }
}

void Notifier::Stop() {
  {
    base::MutexLock lock(&state_->mu);
    state_->stopping = true;
    state_->changed.NotifyAll();
  }
  if (!thread_.joinable()) return;
  if (thread_.get_id() == std::this_thread::get_id()) {
    thread_.detach();  // inside a handler: it ends when the handler returns
  } else {
    thread_.join();
  }
}

void Notifier::BudgetChanged(QuotaView quota) {
  if (state_->on_budget_changed == nullptr) return;
  base::MutexLock lock(&state_->mu);
  if (state_->stopping || state_->budgets.size() >= kMostDevices) return;
  state_->budgets[quota.device] = std::move(quota);
  state_->changed.NotifyAll();
}

void Notifier::Draining(absl::Duration remaining) {
  if (state_->on_draining == nullptr) return;
  base::MutexLock lock(&state_->mu);
  state_->draining = remaining;
  state_->changed.NotifyAll();
}

void Notifier::Run(State& state) {
  for (;;) {
    std::map<std::string, QuotaView> budgets;
    std::optional<absl::Duration> draining;
    {
      base::MutexLock lock(&state.mu);
      while (!state.stopping && state.budgets.empty() &&
             !state.draining.has_value()) {
        state.changed.Wait(&state.mu);
      }
      if (state.stopping) return;
      budgets.swap(state.budgets);
      draining.swap(state.draining);
    }
    if (draining.has_value())
      CallAndDropExceptions(state.on_draining, *draining);
    for (const auto& [device, quota] : budgets) {
      {
        base::MutexLock lock(&state.mu);
        if (state.stopping) return;
      }
      CallAndDropExceptions(state.on_budget_changed, quota);
    }
  }
}

}  // namespace gmb::internal
