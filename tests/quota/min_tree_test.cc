#include "quota/min_tree.h"

#include <gtest/gtest.h>

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
    for (size_t i = 0; i < 2; ++i) {
      const int64_t bound = figure() - 10;
      const int* found = tree.FirstAtMost(bound, i);
      auto it = map.begin();
      while (it != map.end() && it->second[i] > bound) ++it;
      ASSERT_EQ(found == nullptr, it == map.end());
      if (found != nullptr) {
        ASSERT_EQ(*found, it->first);
      }
    }
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
