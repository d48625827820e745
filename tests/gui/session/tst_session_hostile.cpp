// SPDX-License-Identifier: Apache-2.0
#include <QTest>
class TestSessionHostile : public QObject {
    Q_OBJECT
};
QTEST_GUILESS_MAIN(TestSessionHostile)
#include "tst_session_hostile.moc"
