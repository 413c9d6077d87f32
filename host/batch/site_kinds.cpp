#include "batch/site_kinds.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <stdexcept>
#include <type_traits>

#include "common/files.hpp"

namespace assay::host::batch {
namespace {

// A kind, with the settings that a site of it has before its file has been read.
struct KnownKind {
  const SiteKind* kind;
  SiteSettings (*no_settings)();
};

template <class... Settings>
std::vector<KnownKind> rows_of(std::type_identity<std::variant<Settings...>>) {
  return {{&Settings::kind, [] { return SiteSettings(Settings{}); }}...};
}

// In the order of the alternatives of SiteSettings, and of SiteTarget.
const std::vector<KnownKind>& known_kinds() {
  static const std::vector<KnownKind> kinds = rows_of(std::type_identity<SiteSettings>());
  return kinds;
}

// Null for a later kind.
const SiteKind* kind_of(const SiteTarget& target) {
  return target.index() < known_kinds().size() ? known_kinds()[target.index()].kind : nullptr;
}

}  // namespace

std::vector<std::string> names_of_site_kinds() {
  std::vector<std::string> names;
  for (const KnownKind& each : known_kinds()) names.emplace_back(each.kind->name);
  return names;
}

std::vector<const SiteKind*> site_kinds() {
  std::vector<const SiteKind*> kinds;
  for (const KnownKind& each : known_kinds()) kinds.push_back(each.kind);
  return kinds;
}

const SiteKind* find_site_kind(const std::string& name) {
  for (const KnownKind& each : known_kinds())
    if (name == each.kind->name) return each.kind;
  return nullptr;
}

SiteSettings no_settings(const SiteKind& kind) {
  for (const KnownKind& each : known_kinds())
    if (each.kind == &kind) return each.no_settings();
  throw std::logic_error("no row of SiteSettings has this kind");
}

const SiteKind& site_kind(const Site& site) { return *known_kinds()[site.settings.index()].kind; }

const SiteKind& site_kind(const Submission& submission) {
  if (const SiteKind* kind = kind_of(submission.target)) return *kind;
  throw StorageError(
      fmt::format("the batch was submitted to a site of the kind '{}', and this assay knows {}; use the "
                  "assay that submitted it",
                  name_of_kind(submission.target), fmt::join(names_of_site_kinds(), ", ")));
}

std::string name_of_kind(const SiteTarget& target) {
  const SiteKind* kind = kind_of(target);
  return kind ? kind->name : std::get<UnknownTarget>(target).kind;
}

std::vector<std::string> hosts_of(const SiteTarget& target) {
  const SiteKind* kind = kind_of(target);
  return kind && kind->hosts ? kind->hosts(target) : std::vector<std::string>{};
}

std::string cluster_of(const SiteTarget& target) {
  const SiteKind* kind = kind_of(target);
  return kind && kind->cluster ? kind->cluster(target) : "";
}

std::unique_ptr<const Scheduler> scheduler_of(const Submission& submission, const std::filesystem::path& run) {
  return site_kind(submission).scheduler(submission, run);
}

std::unique_ptr<const Scheduler> scheduler_of(const Site& site) {
  Submission submission;
  submission.target = site.target();
  return scheduler_of(submission, {});
}

const char* Site::kind() const { return site_kind(*this).name; }

SiteTarget Site::target() const {
  return std::visit(
      []<class Settings>(const Settings& of_kind) {
        return SiteTarget(static_cast<const typename Settings::Target&>(of_kind));
      },
      settings);
}

bool Site::asks_for_gpus() const {
  const SiteKind& kind = site_kind(*this);
  return gpus_per_node > 0 || (kind.asks_for_gpus && kind.asks_for_gpus(*this));
}

}  // namespace assay::host::batch
