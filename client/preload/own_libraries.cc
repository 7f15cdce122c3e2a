// `gmb run`: the client library, and what it brings along.
#include "client/preload/own_libraries.h"

#include <link.h>

#include <algorithm>
#include <atomic>
#include <vector>

namespace gmb::preload {
namespace {

// The loader lists libraries in the order in which they came.
struct Listing {
  size_t skipped = 0;
  size_t count = 0;
  std::vector<uint64_t> addresses;  // as many as have room: no allocation there
};

int List(dl_phdr_info* info, size_t /*size*/, void* data) {
  auto* const listing = static_cast<Listing*>(data);
  const size_t number = listing->count++;
  if (number < listing->skipped) return 0;
  if (listing->addresses.size() < listing->addresses.capacity())
    listing->addresses.push_back(info->dlpi_addr);
  return 0;
}

size_t CountLibraries() {
  Listing listing;
  dl_iterate_phdr(List, &listing);
  return listing.count;
}

// Null at first; kept as long as the process.
std::atomic<const std::vector<uint64_t>*> own = nullptr;

void NoteAllBut(size_t first) {
  static Listing& listing = *new Listing;
  listing.skipped = first;
  listing.addresses.reserve(CountLibraries());
  dl_iterate_phdr(List, &listing);
  std::sort(listing.addresses.begin(), listing.addresses.end());
  own.store(&listing.addresses);
}

}  // namespace

OwnLibraries::OwnLibraries() : before_(CountLibraries()) {}
OwnLibraries::~OwnLibraries() { NoteAllBut(before_); }

bool OwnLibraries::Has(uint64_t address) {
  const std::vector<uint64_t>* const known = own.load();
  return known != nullptr &&
         std::binary_search(known->begin(), known->end(), address);
}

}  // namespace gmb::preload
