// Replaces names by anonymous ones.
#ifndef SPILLWAY_CLIENT_LIB_FORMAT_PRIVATE_NAMES_H_
#define SPILLWAY_CLIENT_LIB_FORMAT_PRIVATE_NAMES_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "rewrite_core/graph/op_registry.h"

namespace spillway::format {

// Maps names to PREFIX0, PREFIX1, ..., in the order in which they are first mapped.
class NameMap {
 public:
  explicit NameMap(std::string prefix) : prefix_(std::move(prefix)) {}

  // The empty name stays empty.
  std::string Map(absl::string_view name) {
    if (name.empty()) return "";
    const auto [it, is_new] = positions_.try_emplace(name, pairs_.size());
    if (is_new) pairs_.emplace_back(name, absl::StrCat(prefix_, pairs_.size()));
    return pairs_[it->second].second;
  }
  bool Has(absl::string_view name) const { return positions_.contains(name); }

  // (old, new), in that order.
  const std::vector<std::pair<std::string, std::string>>& pairs() const { return pairs_; }

 private:
  const std::string prefix_;
  absl::flat_hash_map<std::string, size_t> positions_;
  std::vector<std::pair<std::string, std::string>> pairs_;
};

// The same for node names, part by part: `a/b/c` becomes `s0/s1/n0`.
class PathMap {
 public:
  // To be called for every name before the first Map: a part that is a scope in one name is a scope
  // in all.
  void NoteScopes(absl::string_view path);

  std::string Map(absl::string_view path);
  // Whether all parts of `path` were mapped.
  bool HasAll(absl::string_view path) const;

  const NameMap& scopes() const { return scopes_; }
  const NameMap& leaves() const { return leaves_; }

 private:
  std::string MapPart(absl::string_view part);

  absl::flat_hash_set<std::string> is_scope_;
  NameMap scopes_{"s"};
  NameMap leaves_{"n"};
};

// Whether a string is one of the constants of an attribute that is an enumeration in TensorFlow.
bool IsKnownConstant(absl::string_view attribute, absl::string_view value);
// Whether a name is TensorFlow's own or common, and so reveals nothing about a user: of an
// attribute of a node of type `op`, of a job, of a device type.
bool IsPublicAttribute(const core::OpInfo& op, absl::string_view name);
bool IsPublicJob(absl::string_view job);
bool IsPublicDeviceType(absl::string_view type);

}  // namespace spillway::format

#endif  // SPILLWAY_CLIENT_LIB_FORMAT_PRIVATE_NAMES_H_
