#ifndef GMB_BROKER_MACHINE_OWNERS_H_
#define GMB_BROKER_MACHINE_OWNERS_H_

namespace gmb::broker {

// The owners of the machine's state, each above those that it may call. News
// that goes the other way is a Fact (fact.h).
class ReclaimIndex;  // what it has counted of each lease
class Recorder;      // what a successor is to find
class IndexKeeper;   // that index, of all leases
class QuotaDesk;     // what the quota engine is told
class SessionDesk;   // sessions, their answers, their deaths
class Gates;         // the gates' words, and groups
class PoolKeeper;    // pools, slabs, what devices report
class Lookout;       // how much is looked at, and whose gates are watched
class HostDesk;      // room in the host pool, copies to it and back
class Backer;        // what is copied ahead of need
class DebtDesk;      // answers that are overdue, and who owes them
class LeaseMover;    // leases that leave the device and come back
class LeaseDesk;     // leases from their grant to their end
class Recalls;       // the engine's Restores
class Sharing;       // shared leases and their names
class RequestDesk;   // Acquires that are not answered
class Waker;         // sessions that wait for their memory
class Gatekeeper;    // gates turned on and off, and pauses
class Reclaimer;     // shortages, operators' demands, trims
class OperatorDesk;  // tenants, departures, draining

}  // namespace gmb::broker

#endif  // GMB_BROKER_MACHINE_OWNERS_H_
