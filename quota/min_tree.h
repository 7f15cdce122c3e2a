// An ordered map from keys to figures that also answers "the first key, in
// order, whose figure is at most this": how a queue finds the next request that
// fits without walking past all that do not. Every operation takes O(log n),
// expected over the tree's own fixed random sequence.
//
// A treap: each node carries a random priority, and for each figure the least
// one of its subtree. Not thread-safe.
#ifndef GMB_QUOTA_MIN_TREE_H_
#define GMB_QUOTA_MIN_TREE_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>

namespace gmb::quota {

template <typename Key, size_t kFigures>
class MinTree {
 public:
  using Figures = std::array<int64_t, kFigures>;

  bool empty() const { return root_ == kNone; }
  size_t size() const { return size_; }

  // `key` must not be in the tree.
  void Insert(const Key& key, const Figures& figures) {
    root_ = InsertAt(root_, NewNode(key, figures));
    ++size_;
  }

  // `key` must be in the tree.
  void Erase(const Key& key) {
    root_ = EraseAt(root_, key);
    --size_;
  }

  // Gives a key that is in the tree other figures.
  void Update(const Key& key, const Figures& figures) {
    UpdateAt(root_, key, figures);
  }

  // The first key in order. The tree must not be empty.
  const Key& First() const {
    Index at = root_;
    while (nodes_[at].left != kNone) at = nodes_[at].left;
    return nodes_[at].key;
  }

  // The figures of a key that is in the tree.
  const Figures& FiguresOf(const Key& key) const {
    Index at = root_;
    while (true) {
      const Node& node = nodes_[at];
      if (key < node.key) {
        at = node.left;
      } else if (node.key < key) {
        at = node.right;
      } else {
        return node.figures;
      }
    }
  }

  // The least value of a figure. The tree must not be empty.
  int64_t Min(size_t figure = 0) const { return nodes_[root_].least[figure]; }

  // The first key none of whose figures is above its bound and that `accept`
  // takes; null when there is none. Valid until the tree changes. O(log n) when
  // the first key whose subtree's least figures are within the bounds is it.
  template <typename Accept>
  const Key* FirstWithin(const Figures& bounds, const Accept& accept) const {
    return FirstWithinAt(root_, bounds, accept);
  }
  const Key* FirstWithin(const Figures& bounds) const {
    return FirstWithinAt(root_, bounds, [](const Key&) { return true; });
  }

  // Calls `visit(key)` in order for those after that key, which need not be in
  // the tree, until it answers false.
  template <typename Visitor>
  void ForEachAfter(const Key& key, const Visitor& visit) const {
    (void)ForEachAfterAt(root_, key, visit);
  }

  // Calls `visit(key, figures)` in order.
  template <typename Visitor>
  void ForEach(const Visitor& visit) const {
    ForEachAt(root_, visit);
  }

 private:
  using Index = uint32_t;
  static constexpr Index kNone = ~Index{0};

  struct Node {
    Key key;
    Figures figures;
    Figures least;  // over the subtree
    uint32_t priority = 0;
    Index left = kNone;
    Index right = kNone;
  };

  // False: `visit` has.
  template <typename Visitor>
  bool ForEachAfterAt(Index at, const Key& key, const Visitor& visit) const {
    if (at == kNone) return true;
    const Node& node = nodes_[at];
    if (key < node.key) {
      if (!ForEachAfterAt(node.left, key, visit) || !visit(node.key))
        return false;
    }
    return ForEachAfterAt(node.right, key, visit);
  }

  Index NewNode(const Key& key, const Figures& figures) {
    // splitmix64: well spread, and the same in every run.
    uint64_t z = (random_state_ += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    const Node node{.key = key,
                    .figures = figures,
                    .least = figures,
                    .priority = static_cast<uint32_t>(z >> 32)};
    if (free_ == kNone) {
      nodes_.push_back(node);
      return static_cast<Index>(nodes_.size() - 1);
    }
    const Index at = free_;
    free_ = nodes_[at].left;
    nodes_[at] = node;
    return at;
  }

  void FreeNode(Index at) {
    nodes_[at].left = free_;
    free_ = at;
  }

  void Pull(Index at) {
    Node& node = nodes_[at];
    node.least = node.figures;
    for (const Index child : {node.left, node.right}) {
      if (child == kNone) continue;
      for (size_t i = 0; i < kFigures; ++i) {
        node.least[i] = std::min(node.least[i], nodes_[child].least[i]);
      }
    }
  }

  // Splits a subtree into keys before `key` and the rest.
  void Split(Index at, const Key& key, Index& before, Index& rest) {
    if (at == kNone) {
      before = rest = kNone;
      return;
    }
    if (nodes_[at].key < key) {
      Index right = kNone;
      Split(nodes_[at].right, key, right, rest);
      nodes_[at].right = right;
      before = at;
    } else {
      Index left = kNone;
      Split(nodes_[at].left, key, before, left);
      nodes_[at].left = left;
      rest = at;
    }
    Pull(at);
  }

  Index InsertAt(Index at, Index node) {
    if (at == kNone) return node;
    if (nodes_[node].priority > nodes_[at].priority) {
      Split(at, nodes_[node].key, nodes_[node].left, nodes_[node].right);
      Pull(node);
      return node;
    }
    if (nodes_[node].key < nodes_[at].key) {
      nodes_[at].left = InsertAt(nodes_[at].left, node);
    } else {
      nodes_[at].right = InsertAt(nodes_[at].right, node);
    }
    Pull(at);
    return at;
  }

  Index Merge(Index left, Index right) {
    if (left == kNone) return right;
    if (right == kNone) return left;
    if (nodes_[left].priority > nodes_[right].priority) {
      nodes_[left].right = Merge(nodes_[left].right, right);
      Pull(left);
      return left;
    }
    nodes_[right].left = Merge(left, nodes_[right].left);
    Pull(right);
    return right;
  }

  Index EraseAt(Index at, const Key& key) {
    if (key < nodes_[at].key) {
      nodes_[at].left = EraseAt(nodes_[at].left, key);
    } else if (nodes_[at].key < key) {
      nodes_[at].right = EraseAt(nodes_[at].right, key);
    } else {
      const Index merged = Merge(nodes_[at].left, nodes_[at].right);
      FreeNode(at);
      return merged;
    }
    Pull(at);
    return at;
  }

  void UpdateAt(Index at, const Key& key, const Figures& figures) {
    if (key < nodes_[at].key) {
      UpdateAt(nodes_[at].left, key, figures);
    } else if (nodes_[at].key < key) {
      UpdateAt(nodes_[at].right, key, figures);
    } else {
      nodes_[at].figures = figures;
    }
    Pull(at);
  }

  static bool Within(const Figures& figures, const Figures& bounds) {
    for (size_t i = 0; i < kFigures; ++i) {
      if (figures[i] > bounds[i]) return false;
    }
    return true;
  }

  template <typename Accept>
  const Key* FirstWithinAt(Index at, const Figures& bounds,
                           const Accept& accept) const {
    if (at == kNone || !Within(nodes_[at].least, bounds)) return nullptr;
    const Node& node = nodes_[at];
    if (const Key* key = FirstWithinAt(node.left, bounds, accept)) return key;
    if (Within(node.figures, bounds) && accept(node.key)) return &node.key;
    return FirstWithinAt(node.right, bounds, accept);
  }

  template <typename Visitor>
  void ForEachAt(Index at, const Visitor& visit) const {
    if (at == kNone) return;
    ForEachAt(nodes_[at].left, visit);
    visit(nodes_[at].key, nodes_[at].figures);
    ForEachAt(nodes_[at].right, visit);
  }

  std::deque<Node> nodes_;  // grows without moving any
  Index root_ = kNone;
  Index free_ = kNone;  // chained through `left`
  size_t size_ = 0;
  uint64_t random_state_ = 0;
};

}  // namespace gmb::quota

#endif  // GMB_QUOTA_MIN_TREE_H_
