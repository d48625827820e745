// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "client/daemon_link.hpp"
#include "gui/models/app_catalog.hpp"
#include "gui/models/domain_model.hpp"
#include "gui/models/job_model.hpp"
#include "gui/models/template_model.hpp"
#include "gui/verbs.hpp"
#include "gui/viewer_launcher.hpp"

namespace bulkhead::gui {

/// What window and tray icon work with, wired together. main() makes one, and so does each test.
struct Desk {
    /// `viewer`: see ViewerLauncher.
    explicit Desk(const QString& viewer = {})
        : viewers(viewer) {}

    client::DaemonLink link;
    JobModel jobs{link};
    TemplateModel templates{link};
    DomainModel domains{link};
    ViewerLauncher viewers;
    AppCatalog apps{link, domains, viewers};
    Verbs verbs{link, domains, jobs, templates};
};

} // namespace bulkhead::gui
