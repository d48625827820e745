// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "gui/widgets/style.hpp"

class QLayout;

/// What forms are made of.
namespace bulkhead::gui {

/// A caption that moves the focus to its field by its letter.
QLabel* caption(const QString& text, QWidget* field);
/// A field with what is to be known of it below.
QLayout* withHint(QWidget* field, QWidget* hint);

} // namespace bulkhead::gui
