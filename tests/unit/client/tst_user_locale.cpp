// SPDX-License-Identifier: Apache-2.0
#include "client/user_locale.hpp"

#include <QTest>

using namespace bulkhead::client;

class TestUserLocale : public QObject {
    Q_OBJECT

private slots:
    void isAlwaysUtf8_data() {
        QTest::addColumn<QString>("lcAll");
        QTest::addColumn<QString>("lang");
        QTest::addColumn<QString>("locale");
        QTest::newRow("usual") << ""
                               << "de_DE.UTF-8"
                               << "de_DE.UTF-8";
        QTest::newRow("LC_ALL wins") << "fr_FR.UTF-8"
                                     << "de_DE.UTF-8"
                                     << "fr_FR.UTF-8";
        QTest::newRow("another spelling") << ""
                                          << "en_GB.utf8"
                                          << "en_GB.UTF-8";
        QTest::newRow("Latin 1") << ""
                                 << "de_DE.ISO-8859-1"
                                 << "de_DE.UTF-8";
        QTest::newRow("euro") << ""
                              << "de_DE@euro"
                              << "de_DE.UTF-8";
        QTest::newRow("script") << ""
                                << "sr_RS@latin"
                                << "sr_RS.UTF-8@latin";
        QTest::newRow("language only") << ""
                                       << "eo"
                                       << "eo.UTF-8";
        QTest::newRow("C") << "C"
                           << "de_DE.UTF-8"
                           << "C.UTF-8";
        QTest::newRow("POSIX") << ""
                               << "POSIX"
                               << "C.UTF-8";
        QTest::newRow("none") << ""
                              << ""
                              << "";
        QTest::newRow("a path") << ""
                                << "/srv/locale"
                                << "";
        QTest::newRow("two lines") << ""
                                   << "de_DE.UTF-8\nX=1"
                                   << "";
        QTest::newRow("ends a line") << ""
                                     << "de_DE.UTF-8\n"
                                     << "";
    }
    void isAlwaysUtf8() {
        QFETCH(QString, lcAll);
        QFETCH(QString, lang);
        QTEST(localeFrom(lcAll, lang), "locale");
    }
};

QTEST_GUILESS_MAIN(TestUserLocale)
#include "tst_user_locale.moc"
