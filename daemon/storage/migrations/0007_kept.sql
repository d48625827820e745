-- SPDX-License-Identifier: Apache-2.0
-- A disposable that is suspended, not removed, when what ran in it has ended.
ALTER TABLE domains ADD COLUMN kept INTEGER NOT NULL DEFAULT 0 CHECK (kept IN (0, 1));
