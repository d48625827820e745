// SPDX-License-Identifier: Apache-2.0
#include "client/labels.hpp"
#include "core/model/definition_change.hpp"

#include <QTest>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

using namespace bulkhead::client;

namespace {

std::vector<Label> allLabels() {
    std::vector<Label> all(labels().begin(), labels().end());
    all.push_back(labelNamed("no-such-label"));
    return all;
}

QByteArray nameOf(const Label& label) {
    return label.name.empty() ? QByteArray("unknown") : QByteArray::fromStdString(std::string(label.name));
}

/// Window backgrounds of the usual desktops, in the lightest and the darkest shade each theme has.
std::vector<Rgb> backgroundsOf(Theme theme) {
    if (theme == Theme::Light) {
        return {{0xff, 0xff, 0xff}, {0xef, 0xef, 0xef}};
    }
    return {{0x1e, 0x1e, 0x1e}, {0x31, 0x36, 0x3b}, {0x35, 0x35, 0x35}};
}

} // namespace

class TestLabels : public QObject {
    Q_OBJECT

private Q_SLOTS:
    /// What the daemon accepts is what we can draw, in the same order.
    void names_areThoseThatTheDaemonAccepts() {
        const auto accepted = bulkhead::core::labelNames();
        QCOMPARE(labels().size(), accepted.size());
        for (std::size_t i = 0; i < accepted.size(); ++i) {
            QCOMPARE(std::string(labels()[i].name), std::string(accepted[i]));
        }
    }

    void theEightAreThere() {
        std::vector<std::string> names;
        for (const Label& label : labels()) {
            names.emplace_back(label.name);
        }
        const std::vector<std::string> expected{"red", "orange", "yellow", "green", "gray", "blue", "purple", "black"};
        QCOMPARE(names, expected);
    }

    void patternsAndTextsAreDistinct() {
        std::set<LabelPattern> patterns;
        std::set<std::string> texts;
        for (const Label& label : allLabels()) {
            QVERIFY2(patterns.insert(label.pattern).second, nameOf(label).constData());
            QVERIFY2(texts.emplace(label.text).second, nameOf(label).constData());
            QVERIFY(label.text.size() >= 2 && label.text.size() <= 3);
        }
    }

    void namesFindTheirLabel() {
        for (const Label& label : labels()) {
            QCOMPARE(labelNamed(label.name).text, label.text);
        }
        for (const std::string_view strange : {"", "Red", "red ", "pink"}) {
            QVERIFY(labelNamed(strange).name.empty());
        }
    }

    void contrastIsThatOfWcag() {
        QCOMPARE(contrast({0, 0, 0}, {255, 255, 255}), 21.0);
        QCOMPARE(contrast({255, 255, 255}, {0, 0, 0}), 21.0);
        QCOMPARE(contrast({1, 2, 3}, {1, 2, 3}), 1.0);
        QVERIFY(std::abs(contrast({0x77, 0x77, 0x77}, {255, 255, 255}) - 4.48) < 0.01);
    }

    void everyoneCanReadThem_data() {
        QTest::addColumn<int>("theme");
        QTest::addColumn<int>("index");
        const std::vector<Label> all = allLabels();
        for (std::size_t i = 0; i < all.size(); ++i) {
            QTest::newRow(nameOf(all[i]) + " light") << static_cast<int>(Theme::Light) << static_cast<int>(i);
            QTest::newRow(nameOf(all[i]) + " dark") << static_cast<int>(Theme::Dark) << static_cast<int>(i);
        }
    }
    void everyoneCanReadThem() {
        QFETCH(int, theme);
        QFETCH(int, index);
        const Label label = allLabels().at(static_cast<std::size_t>(index));
        const LabelColours& colours = label.colours(static_cast<Theme>(theme));

        QVERIFY(contrast(colours.ink, colours.fill) >= 4.5);
        for (const Rgb& background : backgroundsOf(static_cast<Theme>(theme))) {
            QVERIFY(contrast(colours.edge, background) >= 3);
        }
        if (label.pattern != LabelPattern::Solid) {
            QVERIFY2(contrast(colours.mark, colours.fill) >= 1.8,
                     QByteArray::number(contrast(colours.mark, colours.fill)).constData());
        }
    }

    /// Two fills that look alike to everyone would need the pattern; they should not need it with normal sight.
    void fillsDiffer() {
        for (const Theme theme : {Theme::Light, Theme::Dark}) {
            std::vector<Rgb> fills;
            for (const Label& label : allLabels()) {
                const Rgb fill = label.colours(theme).fill;
                for (const Rgb& other : fills) {
                    const int distance = std::abs(fill.red - other.red) + std::abs(fill.green - other.green) +
                                         std::abs(fill.blue - other.blue);
                    QVERIFY2(distance >= 60, nameOf(label).constData());
                }
                fills.push_back(fill);
            }
        }
    }
};

QTEST_APPLESS_MAIN(TestLabels)
#include "tst_labels.moc"
