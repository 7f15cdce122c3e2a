#include "quota/min_tree.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <random>

namespace gmb::quota {
namespace {

// The same answers as a walk through a sorted map.
TEST(MinTreeTest, AnswersLikeASortedMap) {
  std::mt19937_64 random(7);
  MinTree<int, 2> tree;
  std::map<int, std::array<int64_t, 2>> map;
  const auto figure = [&] { return static_cast<int64_t>(random() % 50); };
  for (int step = 0; step < 20000; ++step) {
    const int key = static_cast<int>(random() % 200);
    const std::array<int64_t, 2> figures = {figure(), figure()};
    if (!map.contains(key)) {
      tree.Insert(key, figures);
      map[key] = figures;
    } else if (random() % 2 == 0) {
      tree.Update(key, figures);
      map[key] = figures;
    } else {
      tree.Erase(key);
      map.erase(key);
    }
    ASSERT_EQ(tree.size(), map.size());
    ASSERT_EQ(tree.empty(), map.empty());
    const std::array<int64_t, 2> bounds = {figure() - 10, figure() - 10};
    const int* found = tree.FirstWithin(bounds);
    const auto first =
        std::find_if(map.begin(), map.end(), [&](const auto& entry) {
          return entry.second[0] <= bounds[0] && entry.second[1] <= bounds[1];
        });
    ASSERT_EQ(found == nullptr, first == map.end());
    if (found != nullptr) {
      ASSERT_EQ(*found, first->first);
    }
    const int after = static_cast<int>(random() % 200);
    auto next = map.upper_bound(after);
    tree.ForEachAfter(after, [&](int visited) {
      EXPECT_EQ(visited, next->first);
      return ++next != map.end();
    });
    ASSERT_EQ(next, map.end());
    if (!map.empty()) {
      ASSERT_EQ(tree.First(), map.begin()->first);
      ASSERT_EQ(tree.FiguresOf(map.begin()->first), map.begin()->second);
    }
  }
  auto it = map.begin();
  tree.ForEach([&](int key, const std::array<int64_t, 2>& figures) {
    EXPECT_EQ(key, it->first);
    EXPECT_EQ(figures, it->second);
    ++it;
  });
  EXPECT_EQ(it, map.end());
}

}  // namespace
}  // namespace gmb::quota
