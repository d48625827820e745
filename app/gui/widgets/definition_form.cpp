// SPDX-License-Identifier: Apache-2.0
#include "gui/widgets/definition_form.hpp"

#include "gui/widgets/label_picker.hpp"
#include "gui/wording.hpp"

#include <QEvent>
#include <QFormLayout>
#include <QLineEdit>
#include <QRegularExpression>
#include <QSignalBlocker>
#include <QSpinBox>
#include <QVBoxLayout>

namespace bulkhead::gui {
namespace {

constexpr int kLargestHomeGiB = 4096;
constexpr std::uint64_t kGiB = 1024ULL * 1024 * 1024;

/// The wheel scrolls the page; it changes a value only where the focus is.
class WheelGuard : public QObject {
public:
    using QObject::QObject;
    bool eventFilter(QObject* watched, QEvent* event) override {
        const auto* widget = qobject_cast<QWidget*>(watched);
        if (event->type() != QEvent::Wheel || widget == nullptr || widget->hasFocus()) {
            return false;
        }
        event->ignore();
        return true;
    }
};

void say(TextLabel* label, const QString& text) {
    label->setText(text);
    label->setAccessibleName(text);
    label->setVisible(!text.isEmpty());
}

} // namespace

DefinitionForm::DefinitionForm(QWidget* parent)
    : QWidget(parent)
    , m_size(new QComboBox)
    , m_label(new LabelPicker)
    , m_home(new QSpinBox)
    , m_audio(new QComboBox)
    , m_tags(new QLineEdit) {
    m_size->setAccessibleName(tr("Size"));
    m_home->setAccessibleName(tr("Size of the home disk"));
    m_home->setSuffix(tr(" GiB"));
    m_audio->setAccessibleName(tr("Sound"));
    m_audio->addItem(tr("Off"), QStringLiteral("off"));
    m_audio->addItem(tr("On: it can be heard"), QStringLiteral("out"));
    m_audio->setCurrentIndex(-1); // nothing is known yet
    m_tags->setAccessibleName(tr("Tags"));
    m_tags->setPlaceholderText(tr("none"));
    m_tags->setMaxLength(2048);

    auto* form = new QFormLayout(this);
    form->setContentsMargins(0, 0, 0, 0);
    form->setHorizontalSpacing(kSection);
    form->setVerticalSpacing(10);
    form->setLabelAlignment(Qt::AlignLeft | Qt::AlignTop);
    form->setFieldGrowthPolicy(QFormLayout::AllNonFixedFieldsGrow);
    addField(form, QStringLiteral("label"), tr("&Label"), m_label);
    addField(form, QStringLiteral("size"), tr("Si&ze"), m_size);
    addField(form, QStringLiteral("home-size"), tr("&Home"), m_home);
    addField(form, QStringLiteral("audio"), tr("S&ound"), m_audio);
    addField(form, QStringLiteral("tags"), tr("&Tags"), m_tags);
    setHint(QStringLiteral("tags"), tr("With commas between them. Rules can name them."));
    auto* guard = new WheelGuard(this);
    for (QWidget* input : std::initializer_list<QWidget*>{m_size, m_label, m_home, m_audio}) {
        input->setFocusPolicy(Qt::StrongFocus);
        input->installEventFilter(guard);
    }

    const auto onEdit = [this](const char* key) {
        return [this, key = QString::fromLatin1(key)] {
            setProblem(key, {});
            Q_EMIT edited();
        };
    };
    connect(m_label, &QComboBox::currentIndexChanged, this, onEdit("label"));
    connect(m_size, &QComboBox::currentIndexChanged, this, onEdit("size"));
    connect(m_home, &QSpinBox::valueChanged, this, onEdit("home-size"));
    connect(m_audio, &QComboBox::currentIndexChanged, this, onEdit("audio"));
    connect(m_tags, &QLineEdit::textChanged, this, onEdit("tags"));
    connect(m_tags, &QLineEdit::returnPressed, this, &DefinitionForm::submitted);
}

void DefinitionForm::addField(QFormLayout* form, const QString& key, const QString& caption, QWidget* input) {
    const Field field{input, new TextLabel(TextLabel::Look::Quiet), new TextLabel(TextLabel::Look::Problem)};
    input->setMinimumHeight(kControlHeight);
    auto* column = new QVBoxLayout;
    column->setSpacing(4);
    column->addWidget(input);
    column->addWidget(field.problem);
    column->addWidget(field.hint);
    auto* label = new QLabel(caption);
    label->setBuddy(input);
    label->setMinimumWidth(label->sizeHint().width() + 4); // the underlined letter is not counted in
    label->setFixedHeight(kControlHeight);                 // beside its input, not in the middle of that and its hint
    label->setAlignment(Qt::AlignLeft | Qt::AlignVCenter);
    form->addRow(label, column);
    field.hint->hide();
    field.problem->hide();
    m_fields.insert(key, field);
}

void DefinitionForm::describe(const Field& field) {
    const bool isWrong = !field.problem->text().isEmpty();
    field.input->setAccessibleDescription(isWrong ? field.problem->text() : field.hint->text());
}

void DefinitionForm::setHint(const QString& key, const QString& hint) {
    say(m_fields[key].hint, hint);
    describe(m_fields[key]);
}

void DefinitionForm::setProblem(const QString& key, const QString& problem) {
    say(m_fields[key].problem, problem);
    describe(m_fields[key]);
}

void DefinitionForm::follow(const client::DomainInfo& info, const client::TemplateInfo* known) {
    m_isManaged = info.isManaged;
    const bool wasLabelTouched = m_label->currentIndex() != m_label->findData(m_ownLabel);
    const bool wereTagsTouched = tags() != m_ownTags;
    m_ownLabel = info.label;
    m_ownTags = info.tags;
    {
        const QSignalBlocker quietLabel(m_label);
        const QSignalBlocker quietTags(m_tags);
        if (!wasLabelTouched) {
            // One of a newer daemon, or written by hand: shown by its name, and not changed by being shown.
            m_label->setPlaceholderText(shown(info.label, 32));
            m_label->setCurrentIndex(m_label->findData(info.label));
        }
        if (!wereTagsTouched) {
            m_tags->setText(shown(m_ownTags.join(QStringLiteral(", "))));
        }
    }
    followSizes(info, known);
    followHome(info);
    followAudio(info);
    enableFields();
    Q_EMIT edited();
}

void DefinitionForm::followSizes(const client::DomainInfo& info, const client::TemplateInfo* known) {
    const QSignalBlocker quiet(m_size);
    const QString before = m_size->currentData().toString();
    const bool wasTouched = before != m_ownSize;
    m_ownSize = !info.nextSize.isEmpty()                  ? info.nextSize
                : info.size.isEmpty() && known != nullptr ? known->defaultSize
                                                          : info.size;
    m_size->clear();
    if (known != nullptr) {
        for (auto size = known->sizes.begin(); size != known->sizes.end(); ++size) {
            m_size->addItem(sizeInWords(size.key(), *size), size.key());
        }
    }
    if (m_size->findData(m_ownSize) < 0) { // its template is gone, or has other sizes by now
        m_size->addItem(m_ownSize.isEmpty() ? tr("the template's own") : shown(m_ownSize, 64), m_ownSize);
    }
    const int wanted = m_size->findData(wasTouched ? before : m_ownSize);
    m_size->setCurrentIndex(wanted >= 0 ? wanted : m_size->findData(m_ownSize));
    setHint(QStringLiteral("size"), info.nextSize.isEmpty() ? QString()
                                                            : tr("It runs with %1; %2 takes effect at its next start.")
                                                                  .arg(shown(info.size, 64), shown(info.nextSize, 64)));
}

void DefinitionForm::followHome(const client::DomainInfo& info) {
    const QSignalBlocker quiet(m_home);
    const bool wasTouched = m_home->value() != m_ownHome;
    const int wanted = m_home->value();
    // What it has may be no whole number of GiB: it stands below the first that it can grow to, in its own words.
    m_ownHome = static_cast<int>(std::min<std::uint64_t>(info.homeSize / kGiB, kLargestHomeGiB));
    m_home->setRange(m_ownHome, kLargestHomeGiB);
    m_home->setSpecialValueText(info.homeSize == 0 ? tr("The template's own size") : bytesInWords(info.homeSize));
    m_home->setValue(wasTouched ? std::max(wanted, m_ownHome) : m_ownHome);
    m_canHomeGrow = info.state == QLatin1String("stopped");
    setHint(QStringLiteral("home-size"),
            m_canHomeGrow ? tr("It can grow, never shrink.") : tr("It can grow while the domain is stopped."));
}

void DefinitionForm::followAudio(const client::DomainInfo& info) {
    const QSignalBlocker quiet(m_audio);
    const bool wasTouched = m_audio->currentData().toString() != m_ownAudio;
    m_ownAudio = !info.nextAudio.isEmpty() ? info.nextAudio : info.audio;
    if (!wasTouched || m_ownAudio.isEmpty()) {
        m_audio->setCurrentIndex(m_audio->findData(m_ownAudio)); // none of a newer daemon's
    }
    setHint(QStringLiteral("audio"), info.nextAudio.isEmpty() ? tr("It never hears: it has no microphone.")
                                                              : tr("This takes effect at its next start."));
}

QStringList DefinitionForm::tags() const {
    static const QRegularExpression separator(QStringLiteral("[,\\s]+"));
    return m_tags->text().split(separator, Qt::SkipEmptyParts);
}

QVariantMap DefinitionForm::changes() const {
    QVariantMap changes;
    if (m_label->currentIndex() != m_label->findData(m_ownLabel)) {
        changes.insert(QStringLiteral("label"), m_label->label());
    }
    if (m_size->currentData().toString() != m_ownSize) {
        changes.insert(QStringLiteral("size"), m_size->currentData().toString());
    }
    if (m_home->value() != m_ownHome) {
        changes.insert(QStringLiteral("home-size"), QStringLiteral("%1GiB").arg(m_home->value()));
    }
    if (m_audio->currentIndex() >= 0 && m_audio->currentData().toString() != m_ownAudio) {
        changes.insert(QStringLiteral("audio"), m_audio->currentData().toString());
    }
    if (tags() != m_ownTags) {
        changes.insert(QStringLiteral("tags"), tags());
    }
    return changes;
}

void DefinitionForm::revert() {
    m_label->setCurrentIndex(m_label->findData(m_ownLabel));
    m_size->setCurrentIndex(m_size->findData(m_ownSize));
    m_home->setValue(m_ownHome);
    m_audio->setCurrentIndex(m_audio->findData(m_ownAudio));
    m_tags->setText(shown(m_ownTags.join(QStringLiteral(", "))));
    clearProblems();
    Q_EMIT edited();
}

bool DefinitionForm::showProblem(const client::Failure& failure) {
    const QString message = QString::fromStdString(failure.message);
    const qsizetype colon = message.indexOf(QLatin1String(": "));
    const QString key = message.left(std::max(colon, qsizetype{0}));
    if (!m_fields.contains(key)) {
        return false;
    }
    setProblem(key, sentence({failure.code, message.mid(colon + 2).toStdString()}));
    m_fields[key].input->setFocus();
    return true;
}

void DefinitionForm::clearProblems() {
    for (const QString& key : m_fields.keys()) {
        setProblem(key, {});
    }
}

void DefinitionForm::setBusy(bool isBusy) {
    m_isBusy = isBusy;
    enableFields();
}

void DefinitionForm::enableFields() {
    const bool canEdit = !m_isManaged && !m_isBusy;
    for (QWidget* input : std::initializer_list<QWidget*>{m_label, m_size, m_audio, m_tags}) {
        input->setEnabled(canEdit);
    }
    m_home->setEnabled(canEdit && m_canHomeGrow);
}

} // namespace bulkhead::gui
