// SPDX-License-Identifier: Apache-2.0
// Random operations on real disks of three domains, against a model that knows what each place of them holds: whatever
// is done to one changes nothing of another, and of no snapshot.
#include "imaging/file_instance_store.hpp"
#include "imaging/file_snapshot_store.hpp"
#include "imaging/file_template_store.hpp"
#include "unit/imaging/real_disks.hpp"

#include <QTemporaryDir>
#include <QTest>

#include <array>
#include <map>
#include <random>
#include <sstream>
#include <sys/stat.h>

using namespace bulkhead;
using namespace bulkhead::imaging;
using namespace bulkhead::tests;

namespace {

constexpr unsigned kOperations = 60;
constexpr unsigned kLookEvery = 6; ///< operations between two looks at every place of every disk
constexpr unsigned kMostNodes = 10;
constexpr unsigned kValues = 4;

using Places = std::array<int, kValues>;

Places placesOf(const core::Disk& disk) {
    const auto& top = disk.layers.front();
    process::ProcessSpec spec;
    spec.program = "/usr/bin/qemu-io";
    spec.arguments = {"-r", "-f", std::string(nameOf(top.format))};
    for (unsigned place = 0; place < kValues; ++place) {
        spec.arguments.insert(spec.arguments.end(), {"-c", "read -v " + placeOf(static_cast<int>(place)) + " 1"});
    }
    spec.arguments.push_back(top.path.string());
    spec.environment = process::toolEnvironment();
    const auto result = process::runChecked(spec);
    if (!result) {
        throw std::runtime_error(result.error().message);
    }
    Places found{};
    std::istringstream lines(result->output);
    std::size_t place = 0;
    for (std::string line; std::getline(lines, line) && place < found.size();) {
        // "02800000:  07  ."
        if (line.size() > 12 && line[8] == ':') {
            found[place++] = std::stoi(line.substr(9, 4), nullptr, 16);
        }
    }
    if (place != found.size()) {
        throw std::runtime_error("qemu-io said: " + result->output);
    }
    return found;
}

template <class Value> Value must(Result<Value> result) {
    if (!result) {
        throw std::runtime_error(result.error().message);
    }
    return std::move(*result);
}
void must(const Status& status) {
    if (!status) {
        throw std::runtime_error(status.error().message);
    }
}

struct Node {
    core::SnapshotRecord record;
    Places home{};
    Places system{};
};
struct Domain {
    DomainId id;
    std::string name;
    std::optional<InstanceId> instance;
    Places home{};
    Places system{};
};

class Walk {
public:
    Walk(const fs::path& root, unsigned seed)
        : m_layout(root / "state", root / "run", kEmulatorGroup)
        , m_templates(m_layout, m_clock)
        , m_instances(m_layout)
        , m_snapshots(m_layout)
        , m_installed(installSample(m_templates, root))
        , m_random(seed) {
        for (const char* name : {"one", "two", "three"}) {
            Domain domain{randomId<DomainId>(), name, std::nullopt, {}, {}};
            must(m_instances.createHome(domain.id, 1000, name, 64 * kMiB));
            m_domains.push_back(std::move(domain));
        }
    }

    std::string step() {
        Domain& domain = m_domains[below(m_domains.size())];
        switch (below(12)) {
        case 0:
        case 1:
        case 2:
            return write(domain);
        case 3:
        case 4:
        case 5:
            return m_nodes.size() < kMostNodes ? snapshot(domain) : removeNode();
        case 6:
            return domain.instance ? stop(domain) : start(domain, nullptr);
        case 7:
        case 8:
            return revert(domain);
        case 9:
            return fork(domain);
        default:
            return removeNode();
        }
    }

    /// Empty: the disks hold what the model says. `isThorough`: every place is read, not only every file digested.
    std::string difference(bool isThorough) {
        std::string wrong;
        for (const Node& node : m_nodes) {
            const std::string name = "snapshot " + core::shortId(node.record.id);
            if (const auto damage = m_snapshots.findDamage(node.record)) {
                wrong += name + ": " + damage->file.string() + " " + damage->why + "; ";
            } else if (isThorough &&
                       (placesOf(node.record.home) != node.home ||
                        (!node.record.system.layers.empty() && placesOf(node.record.system) != node.system))) {
                wrong += name + " holds something else; ";
            }
        }
        for (const Domain& domain : m_domains) {
            if (placesOf(must(m_snapshots.home(domain.id))) != domain.home ||
                (domain.instance && placesOf(must(m_snapshots.disksOf(*domain.instance)).system) != domain.system)) {
                wrong += "domain " + domain.name + " holds something else; ";
            }
        }
        if (must(m_snapshots.onDisk()).size() != m_nodes.size()) {
            wrong += "there are other snapshots";
        }
        return wrong;
    }
    [[nodiscard]] const std::map<std::string, unsigned>& counts() const { return m_counts; }

private:
    unsigned below(std::size_t limit) { return static_cast<unsigned>(m_random() % limit); }
    std::string said(const std::string& what, const std::string& name) {
        ++m_counts[what];
        return what + " " + name;
    }
    [[nodiscard]] static core::SnapshotSource source(const Domain& domain) {
        return {domain.instance, domain.id, domain.instance ? kEmulatorUid : 0, kMiB};
    }

    std::string start(Domain& domain, const Node* from) {
        core::InstancePlan plan;
        plan.instance = randomId<InstanceId>();
        plan.templateName = m_installed.name;
        plan.templateVersion = m_installed.version;
        plan.keptHome = domain.id;
        plan.homeSize = 64 * kMiB;
        plan.emulatorUid = kEmulatorUid;
        domain.system = {};
        if (from != nullptr && !from->record.system.layers.empty()) {
            plan.systemBase = from->record.system;
            domain.system = from->system;
        }
        must(m_instances.prepareInstance(plan));
        domain.instance = plan.instance;
        return said("start", domain.name);
    }
    std::string stop(Domain& domain) {
        if (domain.instance) {
            must(m_instances.removeInstance(*domain.instance, domain.id));
            domain.instance.reset();
        }
        return said("stop", domain.name);
    }
    std::string write(Domain& domain) {
        if (!domain.instance) {
            start(domain, nullptr);
        }
        const auto disks = must(m_snapshots.disksOf(*domain.instance));
        const auto place = below(kValues);
        const int value = static_cast<int>(1 + below(255));
        writeLayer(disks.home.layers.front(), static_cast<int>(place), value);
        writeLayer(disks.system.layers.front(), static_cast<int>(place), value);
        domain.home[place] = domain.system[place] = value;
        return said("write", domain.name);
    }
    std::string snapshot(Domain& domain) {
        core::SnapshotRecord record;
        record.id = randomId<SnapshotId>();
        record.domain = domain.id;
        record.owner = 1000;
        record.domainName = domain.name;
        record.createdAt = 1'700'000'000;
        record.reason = "manual";
        record.templateName = m_installed.name;
        record.templateVersion = m_installed.version;
        const auto files = must(m_snapshots.begin(record.id, source(domain)));
        must(m_snapshots.commit(files, source(domain)));
        m_nodes.push_back({must(m_snapshots.publish(record, files)), domain.home, domain.system});
        return said(domain.instance ? "snapshot, running" : "snapshot, stopped", domain.name);
    }
    std::string revert(Domain& domain) {
        if (m_nodes.empty()) {
            return snapshot(domain);
        }
        const Node& node = m_nodes[below(m_nodes.size())];
        const bool wasRunning = domain.instance.has_value();
        stop(domain);
        must(m_snapshots.resetHome(domain.id, 1000, domain.name, node.record.home));
        domain.home = node.home;
        if (wasRunning) {
            start(domain, &node);
        }
        return said("revert", domain.name);
    }
    /// Another domain takes its place, which begins as a node of whatever domain.
    std::string fork(Domain& domain) {
        if (m_nodes.empty()) {
            return snapshot(domain);
        }
        const Node& node = m_nodes[below(m_nodes.size())];
        stop(domain);
        must(m_instances.removeHome(domain.id));
        domain.id = randomId<DomainId>();
        must(m_snapshots.resetHome(domain.id, 1000, domain.name, node.record.home));
        domain.home = node.home;
        return said("remove, and fork as", domain.name);
    }
    /// What its layers are below: another node, a home, a running instance.
    bool isInUse(const Node& node) {
        const auto liesBelow = [&](const core::Disk& disk) {
            return std::any_of(disk.layers.begin(), disk.layers.end(), [&](const core::DiskLayer& layer) {
                return layer == node.record.home.layers.front() ||
                       (!node.record.system.layers.empty() && layer == node.record.system.layers.front());
            });
        };
        return std::any_of(m_nodes.begin(), m_nodes.end(),
                           [&](const Node& other) {
                               return other.record.id != node.record.id &&
                                      (liesBelow(other.record.home) || liesBelow(other.record.system));
                           }) ||
               std::any_of(m_domains.begin(), m_domains.end(), [&](const Domain& domain) {
                   return liesBelow(must(m_snapshots.home(domain.id))) ||
                          (domain.instance && liesBelow(must(m_snapshots.disksOf(*domain.instance)).system));
               });
    }
    std::string removeNode() {
        if (m_nodes.empty()) {
            return write(m_domains.front());
        }
        const auto at = m_nodes.begin() + below(m_nodes.size());
        const bool isExpected = !isInUse(*at);
        const Status removed = m_snapshots.remove(at->record.id);
        if (removed.has_value() != isExpected || (!removed && removed.error().code != ErrorCode::Busy)) {
            throw std::runtime_error("removing snapshot " + core::shortId(at->record.id) + ": " +
                                     (removed ? "it was in use" : removed.error().message));
        }
        const std::string name = core::shortId(at->record.id);
        if (removed) {
            m_nodes.erase(at);
        }
        return said(removed ? "remove snapshot" : "refused: remove snapshot", name);
    }

    ImageLayout m_layout;
    StoppedClock m_clock;
    FileTemplateStore m_templates;
    FileInstanceStore m_instances;
    FileSnapshotStore m_snapshots;
    core::InstalledTemplate m_installed;
    std::mt19937 m_random;
    std::vector<Domain> m_domains;
    std::vector<Node> m_nodes;
    std::map<std::string, unsigned> m_counts;
};

} // namespace

class TestSnapshotDisks : public QObject {
    Q_OBJECT

private slots:
    void initTestCase() {
        if (::geteuid() != 0) {
            QSKIP("giving files to other users needs root");
        }
    }
    void whateverIsDone_nothingElseChanges() {
        constexpr unsigned kSeed = 20261130;
        const QTemporaryDir folder;
        QCOMPARE(::chmod(folder.path().toUtf8().constData(), 0755), 0);
        Walk walk(folder.path().toStdString(), kSeed);
        std::string history;
        for (unsigned at = 0; at < kOperations; ++at) {
            std::string wrong;
            try {
                history += "\n  " + walk.step();
                wrong = walk.difference(at % kLookEvery == kLookEvery - 1);
            } catch (const std::exception& error) {
                wrong = error.what();
            }
            if (!wrong.empty()) {
                QFAIL(("operation " + std::to_string(at) + ": " + wrong + "\ndone:" + history).c_str());
            }
        }
        std::string counts;
        for (const auto& [what, count] : walk.counts()) {
            counts += "\n  " + std::to_string(count) + " " + what;
        }
        qInfo("done:%s", counts.c_str());
    }
};

QTEST_GUILESS_MAIN(TestSnapshotDisks)
#include "tst_snapshot_disks.moc"
