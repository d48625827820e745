-- SPDX-License-Identifier: Apache-2.0
-- A deleted domain holds its name no longer: it stands in deleted_name, and in name its id, which no domain can be called.
ALTER TABLE domains ADD COLUMN deleted_at INTEGER NOT NULL DEFAULT 0 CHECK (deleted_at >= 0);
ALTER TABLE domains ADD COLUMN deleted_name TEXT NOT NULL DEFAULT '';
