// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <glib-object.h>

#include <utility>

namespace bulkhead::viewer {

/// Owns one reference of a GObject. Main thread.
template <class T> class GObjectPtr {
public:
    GObjectPtr() = default;
    /// Takes over the caller's reference.
    static GObjectPtr adopt(T* object) {
        GObjectPtr pointer;
        pointer.m_object = object;
        return pointer;
    }
    /// Adds a reference.
    static GObjectPtr share(T* object) {
        g_object_ref(object);
        return adopt(object);
    }
    GObjectPtr(GObjectPtr&& other) noexcept
        : m_object(std::exchange(other.m_object, nullptr)) {}
    GObjectPtr& operator=(GObjectPtr&& other) noexcept {
        std::swap(m_object, other.m_object);
        return *this;
    }
    GObjectPtr(const GObjectPtr& other)
        : m_object(other.m_object) {
        if (m_object != nullptr) {
            g_object_ref(m_object);
        }
    }
    GObjectPtr& operator=(const GObjectPtr& other) {
        GObjectPtr copy(other);
        std::swap(m_object, copy.m_object);
        return *this;
    }
    ~GObjectPtr() { reset(); }

    void reset() {
        if (m_object != nullptr) {
            g_object_unref(std::exchange(m_object, nullptr));
        }
    }
    [[nodiscard]] T* get() const { return m_object; }
    explicit operator bool() const { return m_object != nullptr; }

private:
    T* m_object = nullptr;
};

} // namespace bulkhead::viewer
