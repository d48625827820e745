// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <QFrame>

#include <vector>

class QLabel;
class QProgressBar;
class QPushButton;
class QVBoxLayout;

namespace bulkhead::gui {

class JobModel;

/// The running jobs at the bottom of the window: what, how far, cancel. Gone while there are none.
class JobBar : public QFrame {
    Q_OBJECT

public:
    explicit JobBar(JobModel& jobs, QWidget* parent = nullptr);

private:
    struct Line {
        QWidget* widget = nullptr;
        QLabel* title = nullptr;
        QLabel* phase = nullptr;
        QProgressBar* progress = nullptr;
        QPushButton* cancel = nullptr;
    };
    void insert(int first, int last);
    void removeLines(int first, int last);
    void update(int number);
    Line makeLine();
    void showOrHide();

    JobModel& m_jobs;
    QVBoxLayout* m_layout;
    std::vector<Line> m_lines;
};

} // namespace bulkhead::gui
